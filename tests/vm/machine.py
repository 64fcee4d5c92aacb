# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Debian machine under QEMU, from the image of build-image: started with new disks, reached by ssh on loopback, thrown away.

It has no network but that. The processor is emulated: that works wherever QEMU does, in containers and in virtual machines, too.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
import subprocess
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 300
"""Seconds that a machine may take to start; on two idle cores it takes 15."""


@dataclass(frozen=True)
class Disk:
    """A new disk: `size` in bytes, `bus` virtio or nvme, `block` the sector size, `optimal_io` what it likes to be written at once."""

    serial: str
    size: int
    bus: str = "virtio"
    block: int = 512
    optimal_io: int = 0

    @property
    def link(self) -> str:
        """The link by which the machine knows it."""
        return f"/dev/disk/by-id/virtio-{self.serial}" if self.bus == "virtio" else f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{self.serial}"


class Machine:
    """A machine that answers."""

    def __init__(self, key: Path, port: int) -> None:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes", "IdentitiesOnly=yes")
        self._ssh = ["ssh", "-i", str(key), "-p", str(port), *(word for option in options for word in ("-o", option)), "root@127.0.0.1"]

    def run(self, *command: str, text: str = "") -> str:
        """Run a command, with the text as its input, and return what it printed; CalledProcessError when it fails."""
        return subprocess.run([*self._ssh, shlex.join(command)], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextlib.contextmanager
def machine(image: Path, folder: Path, disks: t.Sequence[Disk]) -> t.Iterator[Machine]:
    """Start a machine from an image, with its own files in `folder`; TimeoutError with its console when it does not answer."""
    _create(folder / "root.qcow2", "-F", "raw", "-b", str((image / "root.img").resolve()))
    for disk in disks:
        _create(folder / f"{disk.serial}.qcow2", str(disk.size))
    port = _free_port()
    process = subprocess.Popen(_command(image, folder, disks, port), stdin=subprocess.DEVNULL)
    try:
        _wait(process, port, folder / "console.log")
        yield Machine(image / "id_ed25519", port)
    finally:
        process.kill()
        process.wait()


def _create(file: Path, *content: str) -> None:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(file), *content], check=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _command(image: Path, folder: Path, disks: t.Sequence[Disk], port: int) -> list[str]:
    # Without cx16: emulated cmpxchg16b of QEMU 7.2 corrupts the memory of Linux 6.12.
    emulated = ("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "qemu64,cx16=off", "-smp", "2", "-m", "1024")
    kernel = "root=LABEL=machine-root ro console=ttyS0 net.ifnames=0 quiet panic=10 mitigations=off"
    return [
        *("qemu-system-x86_64", "-machine", "q35", *emulated, "-nodefaults", "-no-user-config", "-display", "none"),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd.img"), "-append", kernel),
        *("-serial", f"file:{folder / 'console.log'}", "-device", "virtio-rng-pci"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22", "-device", "virtio-net-pci,netdev=net,romfile="),
        *_drive("ROOT", "virtio-blk-pci", folder / "root.qcow2"),
        *(word for disk in disks for word in _drive(disk.serial, _device(disk), folder / f"{disk.serial}.qcow2")),
    ]


def _device(disk: Disk) -> str:
    name = "virtio-blk-pci" if disk.bus == "virtio" else "nvme"
    likes = f",min_io_size={disk.block},opt_io_size={disk.optimal_io}" if disk.optimal_io else ""
    return f"{name},logical_block_size={disk.block},physical_block_size={disk.block}{likes}"


def _drive(serial: str, device: str, file: Path) -> tuple[str, ...]:
    # What a test writes need not survive the host.
    drive = f"if=none,id={serial},file={file},format=qcow2,discard=unmap,cache=unsafe"
    return "-drive", drive, "-device", f"{device},drive={serial},serial={serial}"


def _wait(process: subprocess.Popen[bytes], port: int, console: Path) -> None:
    """Wait for the banner of sshd: QEMU takes connections long before it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ChildProcessError(f"QEMU ended with {process.returncode}; it says above why")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(2)
            if connection.recv(4) == b"SSH-":
                return
        time.sleep(0.3)
    raise TimeoutError(f"no ssh within {PATIENCE} s; the console's last words: {console.read_text(errors='replace')[-800:]}")
