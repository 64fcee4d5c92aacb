# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded disks as virtio block devices (vhost-user) of a User Mode Linux, whose memory this process maps.

Each disk has a socket, its serial number and its size of sectors. It has a volatile cache, which the kernel flushes; FUA the kernel
replaces by a flush. What is discarded reads zeros.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import shutil
import socket
import struct
import tempfile
import threading
import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .recorded_disks import RecordedDisks, Served

_GET_FEATURES, _SET_FEATURES, _SET_OWNER, _SET_MEMORY = 1, 2, 3, 5
_SET_RING_SIZE, _SET_RING_ADDRESSES, _SET_RING_BASE, _GET_RING_BASE, _SET_RING_KICK, _SET_RING_CALL = 8, 9, 10, 11, 12, 13
_GET_PROTOCOL_FEATURES, _SET_BACKEND_CHANNEL, _GET_CONFIG = 15, 21, 24
_REPLY = 1 | 4
_PROTOCOL_FEATURES = 1 << 9 | 1 << 5
"""The configuration is asked for, and there is a channel for messages to the machine: Linux has no interrupt for the ring without one."""
_SEGMENTS, _BLOCK_SIZE, _HAS_FLUSH, _HAS_DISCARD, _HAS_ZEROS, _HAS_PROTOCOL, _VERSION_1 = (1 << bit for bit in (2, 6, 9, 13, 14, 30, 32))
_FEATURES = _SEGMENTS | _BLOCK_SIZE | _HAS_FLUSH | _HAS_DISCARD | _HAS_ZEROS | _HAS_PROTOCOL | _VERSION_1
_IN, _OUT, _FLUSH, _GET_ID, _DISCARD, _ZEROS = 0, 1, 4, 8, 11, 13
_DONE, _UNSUPPORTED = 0, 2
_NEXT, _WRITABLE = 1, 2
_SECTOR = 512
_MOST_SEGMENTS = 126
_MOST_SECTORS = 1 << 22


class VhostDisks(RecordedDisks):
    """Disks at the sockets that `place` names, until they are closed; `blocks` are their sizes of sectors where these are not 512."""

    def __init__(self) -> None:
        super().__init__()
        # Paths of sockets must be short, which those of tests are not.
        self._folder = Path(tempfile.mkdtemp(prefix="disks"))
        self._listeners: list[socket.socket] = []

    def place(self, name: str) -> Path:
        return self._folder / name

    def insert(self, disks: Mapping[str, Served], blocks: Mapping[str, int] | None = None) -> None:
        super().insert(disks)
        self._stop()
        for name in disks:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.place(name)))
            listener.listen()
            self._listeners.append(listener)
            threading.Thread(target=self._serve, args=(listener, name, (blocks or {}).get(name, _SECTOR)), daemon=True).start()

    def close(self) -> None:
        self._stop()
        shutil.rmtree(self._folder)

    def _stop(self) -> None:
        for listener in self._listeners:
            # A thread that waits for a client is woken by that, and not by closing.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._listeners = []
        for file in self._folder.iterdir():
            file.unlink()

    def _serve(self, listener: socket.socket, name: str, block: int) -> None:
        try:
            connection, _peer = listener.accept()
        except OSError:
            return
        device = _Device(self, name, block)
        with connection, contextlib.suppress(EOFError, ConnectionError), contextlib.closing(device):
            while True:
                ready, _out, _bad = select.select([connection.fileno(), *device.kicks], [], [])
                if connection.fileno() in ready:
                    device.answer(connection)
                if device.kicks and device.kicks[0] in ready:
                    os.read(device.kicks[0], 8)
                    device.work()


@dataclass(frozen=True)
class _Region:
    """Memory of the machine: `address` in the machine, mapped from `offset` on."""

    address: int
    size: int
    offset: int
    memory: mmap.mmap


class _Device:
    """One disk and the ring through which the machine asks for its blocks."""

    def __init__(self, disks: RecordedDisks, name: str, block: int) -> None:
        self._disks = disks
        self._name = name
        self._block = block
        self._regions: list[_Region] = []
        self._size = 0
        self._descriptors = self._used = self._available = 0
        self._seen = 0
        self._call: list[int] = []
        self._channel: list[int] = []
        self.kicks: list[int] = []

    def close(self) -> None:
        for number in (*self.kicks, *self._call, *self._channel):
            os.close(number)
        for region in self._regions:
            region.memory.close()

    # ---- messages of the vhost-user protocol

    def answer(self, connection: socket.socket) -> None:
        """Take one message; EOFError at the end."""
        header, files, _flags, _peer = socket.recv_fds(connection, 12, 8)
        if len(header) < 12:
            raise EOFError
        request, _version, size = struct.unpack("<III", header)
        payload = b""
        while len(payload) < size:
            part, more, _flags, _peer = socket.recv_fds(connection, size - len(payload), 8)
            if not part:
                raise EOFError
            payload, files = payload + part, [*files, *more]
        answer = self._take(request, payload, files)
        if answer is not None:
            connection.sendall(struct.pack("<III", request, _REPLY, len(answer)) + answer)

    def _take(self, request: int, payload: bytes, files: list[int]) -> bytes | None:
        if request == _GET_FEATURES:
            return struct.pack("<Q", _FEATURES)
        if request == _GET_PROTOCOL_FEATURES:
            return struct.pack("<Q", _PROTOCOL_FEATURES)
        if request == _GET_CONFIG:
            offset, size, flags = struct.unpack_from("<III", payload)
            return struct.pack("<III", offset, size, flags) + self._config()[offset:][:size].ljust(size, b"\0")
        if request == _GET_RING_BASE:
            return struct.pack("<II", 0, self._seen)
        if request == _SET_MEMORY:
            self._map(payload, files)
        elif request == _SET_RING_SIZE:
            self._size = struct.unpack("<II", payload)[1]
        elif request == _SET_RING_BASE:
            self._seen = struct.unpack("<II", payload)[1]
        elif request == _SET_RING_ADDRESSES:
            _index, _flags, self._descriptors, self._used, self._available, _log = struct.unpack("<IIQQQQ", payload)
        elif request == _SET_RING_KICK:
            self.kicks = files
        elif request == _SET_RING_CALL:
            self._call = files
        elif request == _SET_BACKEND_CHANNEL:
            self._channel = files
        return None

    def _map(self, payload: bytes, files: list[int]) -> None:
        for region in self._regions:
            region.memory.close()
        self._regions = []
        count = struct.unpack_from("<I", payload)[0]
        for number, file in zip(range(count), files, strict=True):
            address, size, _user, offset = struct.unpack_from("<QQQQ", payload, 8 + 32 * number)
            self._regions.append(_Region(address, size, offset, mmap.mmap(file, offset + size)))
            os.close(file)

    def _config(self) -> bytes:
        """Return virtio's configuration of a block device."""
        sectors = self._disks.disks[self._name].size // _SECTOR
        head = struct.pack("<QII4xIBBHIBxH", sectors, 0, _MOST_SEGMENTS, self._block, 0, 0, 0, 0, 1, 1)
        return head + struct.pack("<IIIIIB3x", _MOST_SECTORS, 1, self._block // _SECTOR, _MOST_SECTORS, 1, 0)

    # ---- the ring

    def work(self) -> None:
        """Carry out all requests that are in the ring, and tell the machine."""
        while self._seen != self._number(self._available + 2, "<H"):
            head = self._number(self._available + 4 + 2 * (self._seen % self._size), "<H")
            written = self._carry_out(list(self._chain(head)))
            used = self._number(self._used + 2, "<H")
            self._put(self._used + 4 + 8 * (used % self._size), struct.pack("<II", head, written))
            self._put(self._used + 2, struct.pack("<H", (used + 1) % 65536))
            self._seen = (self._seen + 1) % 65536
            if self._call:
                os.write(self._call[0], struct.pack("<Q", 1))

    def _carry_out(self, chain: list[tuple[int, int, bool]]) -> int:
        """Carry out one request, a chain of buffers; return how many bytes were written into them."""
        outgoing = b"".join(self._get(address, size) for address, size, writable in chain if not writable)
        incoming = [(address, size) for address, size, writable in chain if writable]
        kind, sector = struct.unpack_from("<I4xQ", outgoing)
        room = sum(size for _address, size in incoming) - 1
        answer, status = b"", _DONE
        if kind == _IN:
            answer = self._disks.read(self._name, sector * _SECTOR, room)
        elif kind == _OUT:
            self._disks.write(self._name, sector * _SECTOR, len(outgoing) - 16, outgoing[16:])
        elif kind == _FLUSH:
            self._disks.flush(self._name)
        elif kind == _GET_ID:
            answer = self._name.encode()[:room].ljust(room, b"\0")
        elif kind in (_DISCARD, _ZEROS):
            first, count = struct.unpack_from("<QI", outgoing, 16)
            self._disks.write(self._name, first * _SECTOR, count * _SECTOR, None)
        else:
            answer, status = bytes(room), _UNSUPPORTED
        data = answer + bytes([status])
        for address, size in incoming:
            self._put(address, data[:size])
            data = data[size:]
        return len(answer) + 1

    def _chain(self, number: int) -> Iterator[tuple[int, int, bool]]:
        """Return the buffers of a request: address, size, and whether the device writes there."""
        while True:
            address, size, flags, following = struct.unpack("<QIHH", self._get(self._descriptors + 16 * number, 16))
            yield address, size, bool(flags & _WRITABLE)
            if not flags & _NEXT:
                return
            number = following

    def _number(self, address: int, form: str) -> int:
        return t.cast("int", struct.unpack(form, self._get(address, struct.calcsize(form)))[0])

    def _place(self, address: int) -> tuple[mmap.mmap, int]:
        for region in self._regions:
            if region.address <= address < region.address + region.size:
                return region.memory, address - region.address + region.offset
        raise ConnectionError(f"the machine has no memory at {address:#x}")

    def _get(self, address: int, size: int) -> bytes:
        memory, at = self._place(address)
        return memory[at : at + size]

    def _put(self, address: int, data: bytes) -> None:
        memory, at = self._place(address)
        memory[at : at + len(data)] = data
