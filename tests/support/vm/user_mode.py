# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Debian machine as User Mode Linux: its kernel is a process of this host, so that its programs run at nearly the host's speed.

It has the root file system of build-image, systemd and udev, and the kernel of Debian's package user-mode-linux with md, device-mapper,
LVM, LUKS, bcache and LIO; nvmet it has not. It has one processor, no network, no firmware and no initramfs, and its disks are virtio disks
with serial numbers, which are recorded (VhostDisks). A start takes seconds of a processor, so that every machine starts from the beginning;
a disk is plugged in when the kernel's driver is bound to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import typing as t
from pathlib import Path

from .machine import PATIENCE, Disk, Guest
from .torn_disks import Write
from .torn_runs import State
from .vhost_disks import VhostDisks

KERNEL = Path("/usr/bin/linux.uml")
_MODULES = "/usr/lib/uml/modules"
_HERE = Path(__file__).parent
_AGENT = _HERE.parents[1] / "vm" / "user_mode_agent.py"
_UNITS = {
    "usr-lib-modules.mount": f"""[Unit]
Description=The kernel's modules, which the host has
DefaultDependencies=no
Before=systemd-modules-load.service systemd-udevd.service lvm2-monitor.service multipathd.service
[Mount]
What=none
Where=/usr/lib/modules
Type=hostfs
Options={_MODULES}
""",
    "agent.service": """[Unit]
Description=Runs commands of the host
DefaultDependencies=no
After=usr-lib-modules.mount systemd-udevd.service systemd-remount-fs.service
[Service]
ExecStart=/usr/bin/python3 /root/agent.py /run/commands /dev/ttyS0
""",
}
_VIRTIO = "/sys/bus/virtio"


class UserModeMachine(Guest):
    """A machine whose disks are those of its `server`."""

    def __init__(self, image: Path, folder: Path) -> None:
        super().__init__()
        self.server = VhostDisks()
        self._root = _root(image)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._order: list[str] = []
        (self.sockets / "commands").mkdir()
        ssh = self.sockets / "ssh"
        ssh.write_text(f"#!{sys.executable}\n{(_HERE / 'user_mode_ssh.py').read_text(encoding='utf-8')}", encoding="utf-8")
        ssh.chmod(0o700)

    @property
    def ansible_variables(self) -> dict[str, t.Any]:
        return {
            "ansible_host": "machine",
            "ansible_user": "root",
            "ansible_ssh_executable": str(self.sockets / "ssh"),
            "ansible_ssh_transfer_method": "piped",
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    def start(self, disks: t.Sequence[Disk], contents: State, root: Path | None = None) -> None:
        """Start from the beginning with a new root, or one that was saved; the disks have these contents, and are not plugged in yet."""
        self.cut_power()
        self.server.insert({disk.serial: contents[disk.serial] for disk in disks}, {disk.serial: disk.block for disk in disks})
        self._order = [disk.serial for disk in disks]
        cow = self._folder / "root.cow"
        cow.unlink(missing_ok=True)
        if root is not None:
            subprocess.run(["cp", "--sparse=always", str(root), str(cow)], check=True)
        line, far_end = socket.socketpair()
        command = [
            *(str(KERNEL), f"ubd0={cow},{self._root}", "root=/dev/ubda", "ro", "mem=1024M", "con=null", "con0=null,fd:1"),
            *(f"ssl0=fd:{far_end.fileno()}", f"uml_dir={self.sockets}/", "quiet", "modprobe.blacklist=virtio_blk"),
            *(f"virtio_uml.device={self.server.place(name)}:2" for name in self._order),
            f"commands={self.sockets / 'commands'}",
        ]
        with open(self._folder / "console.log", "wb") as console:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                pass_fds=(far_end.fileno(),),
                start_new_session=True,
                env={**os.environ, **_preloaded(self._folder)},
            )
        far_end.close()
        self._await_agent(line)
        threading.Thread(target=_Agent(self.sockets / "agent", line).serve, daemon=True).start()
        self.run("sh", "-c", f"echo 0 >{_VIRTIO}/drivers_autoprobe && modprobe virtio_blk")

    def save_root(self, file: Path) -> None:
        """Save the root of the running machine, so that others can start with it; it is switched off."""
        self.run("sync")
        self.cut_power()
        (self._folder / "root.cow").replace(file)

    def plug(self, disk: Disk) -> None:
        """Plug in a disk of the last start, and wait until udev has seen it."""
        self.run(
            "sh",
            "-c",
            f"echo virtio{self._order.index(disk.serial)} >{_VIRTIO}/drivers/virtio_blk/bind; udevadm settle; test -e {disk.link}",
        )

    def written(self, disks: t.Iterable[Disk]) -> int:
        """Return how many writes these disks have taken since the start."""
        serials = {disk.serial for disk in disks}
        return sum(isinstance(event, Write) and event.disk in serials for event in self.server.events)

    def cut_power(self) -> None:
        """Cut the power: what the machine has not written is lost."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        (self.sockets / "agent").unlink(missing_ok=True)

    def throw_away(self) -> None:
        self.cut_power()
        self.server.close()
        shutil.rmtree(self.sockets)

    def _ssh(self, command: t.Sequence[str]) -> list[str]:
        return [str(self.sockets / "ssh"), shlex.join(command)]

    def _await_agent(self, line: socket.socket) -> None:
        said = b""
        line.settimeout(PATIENCE)
        while b"ready\n" not in said:
            try:
                part = line.recv(100)
            except TimeoutError:
                part = b""
            if not part:
                words = (self._folder / "console.log").read_text(errors="replace")[-800:]
                raise ChildProcessError(f"the machine did not start; its console's last words: {words}")
            said += part
        line.settimeout(None)


class _Agent:
    """Passes the names of commands between clients of a socket and the serial line of the agent, until the machine ends."""

    def __init__(self, path: Path, line: socket.socket) -> None:
        self._line = line
        self._clients: dict[str, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def serve(self) -> None:
        with contextlib.suppress(OSError), self._line.makefile(encoding="ascii", errors="replace") as lines:
            for line in lines:
                client = self._clients.pop(line.strip(), None)
                if client is not None:
                    with client, contextlib.suppress(OSError):
                        client.sendall(b"\n")
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._line.close()
        for client in self._clients.values():
            client.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _peer = self._listener.accept()
                name = client.makefile(encoding="ascii").readline().strip()
                self._clients[name] = client
                self._line.sendall(f"{name}\n".encode())
            except OSError:
                return


def _preloaded(folder: Path) -> dict[str, str]:
    """Return the variables with which the kernel starts on a processor that has AMX; compiles what is loaded before it into a folder."""
    if " amx_tile" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return {}
    library = folder / "whole_xstate.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(_HERE / "whole_xstate.c")], check=True)
    return {"LD_PRELOAD": str(library)}


def _root(image: Path) -> Path:
    """Return the image's root file system with the agent, made if need be."""
    key = [str((image / "root.img").stat().st_mtime_ns), _AGENT.read_text(encoding="utf-8"), *_UNITS.values()]
    file = image / f"user-mode-{hashlib.sha256(''.join(key).encode()).hexdigest()[:12]}.img"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=image) as folder:
            new = Path(folder) / "root.img"
            subprocess.run(["cp", "--sparse=always", str(image / "root.img"), str(new)], check=True)
            system = "/etc/systemd/system"
            commands = [f"write {_AGENT} /root/agent.py"]
            for name, text in _UNITS.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
                commands += [f"write {folder}/{name} {system}/{name}", f"symlink {system}/sysinit.target.wants/{name} {system}/{name}"]
            commands += [f"rm {system}/multi-user.target.wants/{name}.service" for name in ("loopback-network", "ssh")]
            subprocess.run(["debugfs", "-w", "-f", "-", str(new)], input="\n".join(commands), text=True, check=True, capture_output=True)
            new.replace(file)
    return file
