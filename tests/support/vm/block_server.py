# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A block server (NBD) of recorded disks.

It speaks what QEMU does: the newstyle negotiation, and reads, writes, flushes, zeros and discards, with FUA. What is discarded reads zeros.
"""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
import typing as t
from collections.abc import Mapping
from pathlib import Path

from .recorded_disks import RecordedDisks, Served

_FLAGS = 1 | 4 | 8 | 32 | 64
"""Flushes, FUA, discards and zeros are served."""
_OPTION_REPLY = 0x3E889045565A9
_REQUEST, _REPLY = 0x25609513, 0x67446698
_ABORT, _INFO, _GO = 2, 6, 7
_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM, _ZEROS = 0, 1, 2, 3, 4, 6
_ACKNOWLEDGE, _INFORMATION, _UNSUPPORTED = 1, 3, 1 << 31 | 1
_FUA = 1
_INVALID = 22


class BlockServer(RecordedDisks):
    """Serves disks by their names on a socket, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        # Paths of sockets must be short, which those of tests are not.
        self.path = Path(tempfile.mkdtemp(prefix="disks")) / "socket"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        shutil.rmtree(self.path.parent)

    def _accept(self) -> None:
        while True:
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            try:
                name = _negotiate(t.cast(t.BinaryIO, stream), self.disks)
                while name is not None and self._answer(t.cast(t.BinaryIO, stream), name):
                    pass
            except (EOFError, ConnectionError, ValueError):
                return

    def _answer(self, stream: t.BinaryIO, name: str) -> bool:
        """Serve one request; return whether there may be more."""
        magic, flags, kind, cookie, offset, size = struct.unpack(">IHHQQI", _exactly(stream, 28))
        if magic != _REQUEST or kind == _DISCONNECT:
            return False
        data = _exactly(stream, size) if kind == _WRITE else b""
        error, answer = self._carry_out(name, kind, offset, size, data, bool(flags & _FUA))
        stream.write(struct.pack(">IIQ", _REPLY, error, cookie) + answer)
        stream.flush()
        return True

    def _carry_out(self, name: str, kind: int, offset: int, size: int, data: bytes, through: bool) -> tuple[int, bytes]:
        if kind == _READ:
            return 0, self.read(name, offset, size)
        if kind == _FLUSH:
            self.flush(name)
        elif kind in (_WRITE, _TRIM, _ZEROS):
            self.write(name, offset, size, data, through)
        else:
            return _INVALID, b""
        return 0, b""


def _negotiate(stream: t.BinaryIO, disks: Mapping[str, Served]) -> str | None:
    """Return the name of the disk that was asked for; None when nothing is wanted any more."""
    stream.write(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 3))
    stream.flush()
    _exactly(stream, 4)
    while True:
        _magic, option, size = struct.unpack(">8sII", _exactly(stream, 16))
        data = _exactly(stream, size)

        def reply(kind: int, answer: bytes = b"", option: int = option) -> None:
            stream.write(struct.pack(">QIII", _OPTION_REPLY, option, kind, len(answer)) + answer)
            stream.flush()

        if option == _ABORT:
            reply(_ACKNOWLEDGE)
            return None
        if option not in (_INFO, _GO):
            reply(_UNSUPPORTED)
            continue
        name = data[4 : 4 + struct.unpack(">I", data[:4])[0]].decode()
        reply(_INFORMATION, struct.pack(">HQH", 0, disks[name].size, _FLAGS))
        reply(_ACKNOWLEDGE)
        if option == _GO:
            return name


def _exactly(stream: t.BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
