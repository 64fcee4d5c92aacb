# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Debian machine under QEMU, from the image of build-image: started with new disks, reached by ssh on loopback, thrown away.

It has no network but that. The processor is emulated: that works wherever QEMU does, in containers and in virtual machines, too.
As a start takes a while, the first machine of an image is saved when it has started, and all others go on from there: their disks are
plugged in while they run. What is started again, after a power cut or a shutdown, starts from the beginning.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from . import monitor

PATIENCE = 600
"""Seconds that a machine may take to start; on two idle cores it takes 15."""

LONG_PATIENCE = 2400
"""Seconds that a start from disks may take: one from an array that lacks a member waits for it first, by the machine's own slow clock."""

PORTS = 8
"""How many disks that are PCI devices (virtio, nvme) can be plugged into a machine that goes on from the saved start."""

_SAVED = "started"
_OVMF = Path("/usr/share/OVMF")


@dataclass(frozen=True)
class Disk:
    """A new disk: `size` in bytes, `bus` scsi, virtio or nvme, `block` the sector size, `optimal_io` what it likes to be written at once.

    Only disks on the bus scsi can be `rotational`, for virtio always says so and nvme never; they are known by their WWN.
    """

    serial: str
    size: int
    bus: str = "virtio"
    block: int = 512
    optimal_io: int = 0
    rotational: bool = False

    @property
    def link(self) -> str:
        """The most durable link by which the machine knows it."""
        return {
            "virtio": f"/dev/disk/by-id/virtio-{self.serial}",
            "scsi": f"/dev/disk/by-id/wwn-{self.wwn:#x}",
            "nvme": f"/dev/disk/by-id/nvme-nvme.1b36-{self.serial.encode().hex()}-{b'QEMU NVMe Ctrl'.hex()}-00000001",
        }[self.bus]

    @property
    def wwn(self) -> int:
        """A WWN of the registered form, derived from the serial number."""
        return 0x5000C50000000000 + int.from_bytes(hashlib.sha256(self.serial.encode()).digest()[:5], "big")


class Guest:
    """A machine that takes commands."""

    def __init__(self) -> None:
        # Paths of sockets must be short, which those of tests are not. Connections that are shared have theirs here, too.
        self.sockets = Path(tempfile.mkdtemp(prefix="vm"))

    @property
    def ansible_variables(self) -> dict[str, t.Any]:
        """The variables with which Ansible reaches the machine."""
        raise NotImplementedError

    def written(self, disks: t.Iterable[Disk]) -> int:
        """Return how many writes these disks have taken since they were plugged in."""
        raise NotImplementedError

    def _ssh(self, command: t.Sequence[str]) -> list[str]:
        """Return the command of this host that runs a command in the machine."""
        raise NotImplementedError

    def run(self, *command: str, text: str = "") -> str:
        """Run a command, with the text as its input, and return what it printed; CalledProcessError when it fails."""
        return subprocess.run(self._ssh(command), input=text, stdout=subprocess.PIPE, text=True, check=True).stdout

    def attempt(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        return subprocess.run(self._ssh(command), input=text, capture_output=True, text=True, check=False)

    def begin(self, *command: str, text: str) -> subprocess.Popen[str]:
        """Begin a command with the text as its input, and return at once."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write(text)
            file.seek(0)
            return subprocess.Popen(self._ssh(command), stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def send(self, files: Path, *, to: str) -> None:
        """Copy all that is in a folder into a folder of the machine."""
        archive = subprocess.run(
            ["tar", "--create", "--dereference", "--directory", str(files), "."], stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(self._ssh(("sh", "-c", f"mkdir -p {to} && tar --extract --touch --directory {to}")), input=archive, check=True)


class Machine(Guest):
    """A machine with its files in `folder`; `disks` are those that are plugged in, in the order of their attachment."""

    def __init__(self, image: Path, folder: Path) -> None:
        super().__init__()
        self._image = image
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self.disks: list[Disk] = []
        # A TPM 2 of swtpm, whose memory outlives a restart; and whether this host's loopback is reached at 10.0.2.2.
        self.has_tpm = False
        self.reaches_host = False

    @property
    def ansible_variables(self) -> dict[str, t.Any]:
        """The variables with which Ansible reaches the machine."""
        return {
            "ansible_host": "127.0.0.1",
            "ansible_port": self._port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self._image / "id_ed25519"),
            "ansible_ssh_common_args": " ".join(f"-o {option}" for option in _SSH_OPTIONS),
            "ansible_python_interpreter": "/usr/bin/python3",
        }

    # ---- power

    def resume(self, disks: t.Sequence[Disk], start: Path | None = None) -> None:
        """Go on from the image's saved start, or from another one that was saved; disks that are new here are made."""
        shutil.copyfile(_saved_start(self._image) if start is None else start, self._folder / "root.qcow2")
        self._switch_on(("-loadvm", _SAVED))
        self.run("date", "--set", f"@{time.time():.0f}")
        self.disks = []
        for disk in disks:
            self.plug(disk)

    def save_start(self, file: Path) -> None:
        """Save the running machine, which has to have no disks, so that others can go on from there; it is switched off."""
        for command in ("sync", "echo 3 >/proc/sys/vm/drop_caches"):
            self.run("sh", "-c", command)
        monitor.human(self._monitor, f"savevm {_SAVED}")
        monitor.execute(self._monitor, "quit", {})
        self.cut_power()
        (self._folder / "root.qcow2").replace(file)

    def start(self, disks: t.Sequence[Disk] = (), uefi: bool = False) -> None:
        """Start from the beginning, with what was on root and disks before, or with new ones; the firmware is a BIOS or UEFI."""
        root = self._folder / "root.qcow2"
        if not root.exists():
            _create(root, "-F", "raw", "-b", str((self._image / "root.img").resolve()))
        for disk in disks:
            self._make(disk)
        self.disks = list(disks)
        ports = max(PORTS, sum(disk.bus != "scsi" for disk in disks))
        attached = [word for at, disk in enumerate(disks) for word in self._attached(disk, _port(disk, disks[:at]))]
        self._switch_on([*(_uefi(self._folder) if uefi else []), *attached], ports)

    def start_from_disks(self, disks: t.Sequence[Disk], uefi: bool = False) -> None:
        """Start what was installed on these disks by the machine's firmware: without the image's root and its kernel."""
        self.disks = list(disks)
        firmware = _uefi(self._folder) if uefi else []
        attached = [word for at, disk in enumerate(disks) for word in self._attached(disk, _port(disk, disks[:at]), f",bootindex={at}")]
        self._switch_on([*firmware, *attached], kernel=False, patience=LONG_PATIENCE)

    def cut_power(self) -> None:
        """Cut the power: what the machine has not written out is lost."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        for connection in self.sockets.iterdir():
            connection.unlink(missing_ok=True)

    def shut_down(self) -> None:
        """Shut the machine down in good order."""
        self.attempt("systemctl", "poweroff")
        if self._process is not None:
            self._process.wait(PATIENCE)
        self.cut_power()

    def restart(self) -> None:
        """Shut down in good order and start from the beginning, with the same disks."""
        self.shut_down()
        self.start(self.disks)

    def throw_away(self) -> None:
        """Cut the power and forget the sockets; the files are in the caller's folder."""
        self.cut_power()
        shutil.rmtree(self.sockets)

    # ---- disks

    def plug(self, disk: Disk) -> None:
        """Plug a disk into the running machine, and wait until the machine knows it."""
        self._make(disk)
        monitor.human(self._monitor, f"drive_add 0 {_drive(disk.serial, self._file(disk))}")
        self._attach(disk)

    def plug_served(self, disk: Disk, server: Path) -> None:
        """Plug in a disk that a block server has under its serial number, with a cache that it is told to flush."""
        where = {"type": "unix", "path": str(server)}
        node = {"driver": "nbd", "node-name": disk.serial, "server": where, "export": disk.serial, "discard": "unmap"}
        monitor.execute(self._monitor, "blockdev-add", node)
        self._attach(disk)

    def _attach(self, disk: Disk) -> None:
        arguments = dict(pair.split("=", 1) for pair in _device(disk, _port(disk, self.disks)).split(",")[1:])
        driver = _device(disk, "").split(",", maxsplit=1)[0]
        monitor.execute(self._monitor, "device_add", {"driver": driver, **{key: _typed(value) for key, value in arguments.items()}})
        self.disks.append(disk)
        self._await_link(disk)

    def unplug(self, disk: Disk) -> None:
        """Pull a disk out, as if it had failed; only for those on the bus scsi."""
        monitor.execute(self._monitor, "device_del", {"id": f"disk-{disk.serial}"})
        self.disks.remove(disk)

    def grow(self, disk: Disk, size: int) -> Disk:
        """Make a disk larger while the machine is off; return it as it is then."""
        subprocess.run(["qemu-img", "resize", "-q", str(self._file(disk)), str(size)], check=True)
        return Disk(disk.serial, size, disk.bus, disk.block, disk.optimal_io, disk.rotational)

    def written(self, disks: t.Iterable[Disk]) -> int:
        """Return how many writes these disks have taken since they were plugged in."""
        serials = {disk.serial for disk in disks}
        found = monitor.execute(self._monitor, "query-blockstats", {})
        return sum(entry["stats"]["wr_operations"] for entry in found if entry.get("device") in serials)

    def content(self, disk: Disk) -> str:
        """Return the digest of all that is on a disk, while the machine is off."""
        with tempfile.NamedTemporaryFile(dir=self._folder) as raw:
            subprocess.run(["qemu-img", "convert", "-O", "raw", str(self._file(disk)), raw.name], check=True)
            with open(raw.name, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()

    def save_disks(self, name: str) -> None:
        """Keep the state of all disks under a name, while the machine is off."""
        for disk in self.disks:
            subprocess.run(["qemu-img", "snapshot", "-c", name, str(self._file(disk))], check=True)

    def load_disks(self, name: str) -> None:
        """Take all disks back to a state that was kept, while the machine is off."""
        for disk in self.disks:
            subprocess.run(["qemu-img", "snapshot", "-a", name, str(self._file(disk))], check=True)

    # ---- inside

    @property
    def _monitor(self) -> Path:
        return self.sockets / "monitor"

    def _file(self, disk: Disk) -> Path:
        return self._folder / f"{disk.serial}.qcow2"

    def _make(self, disk: Disk) -> None:
        if not self._file(disk).exists():
            _create(self._file(disk), str(disk.size))

    def _attached(self, disk: Disk, port: str, more: str = "") -> tuple[str, ...]:
        return "-drive", _drive(disk.serial, self._file(disk)), "-device", f"{_device(disk, port)}{more}"

    def _await_link(self, disk: Disk) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.attempt("sh", "-c", f"udevadm settle; test -e {disk.link}").returncode == 0:
                return
            time.sleep(0.2)
        raise TimeoutError(f"{disk.link} did not appear")

    def _ssh(self, command: t.Sequence[str]) -> list[str]:
        # One connection for all commands: with an emulated processor each new one takes a second or two.
        shared = ("ControlMaster=auto", f"ControlPath={self.sockets / 'ssh'}", "ControlPersist=600", "ServerAliveInterval=15")
        options = [word for option in (*_SSH_OPTIONS, *shared) for word in ("-o", option)]
        return ["ssh", "-i", str(self._image / "id_ed25519"), "-p", str(self._port), *options, "root@127.0.0.1", shlex.join(command)]

    def _tpm(self) -> tuple[str, ...]:
        """Start a TPM, which ends with the machine, and return what plugs it in."""
        memory, end = self._folder / "tpm", self.sockets / "tpm"
        memory.mkdir(exist_ok=True)
        options = ("--tpm2", "--tpmstate", f"dir={memory}", "--ctrl", f"type=unixio,path={end}", "--terminate", "--daemon")
        subprocess.run(["swtpm", "socket", *options], check=True)
        return "-chardev", f"socket,id=tpm,path={end}", "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-crb,tpmdev=tpm0"

    def _switch_on(self, more: t.Sequence[str], ports: int = PORTS, kernel: bool = True, patience: float = PATIENCE) -> None:
        self._port = _free_port()
        restrict = "off" if self.reaches_host else "on"
        command = [
            *(_command(self._image, self._folder / "root.qcow2", ports) if kernel else _hardware(ports)),
            *("-netdev", f"user,id=net,restrict={restrict},hostfwd=tcp:127.0.0.1:{self._port}-:22"),
            *("-serial", f"file:{self._folder / 'console.log'}", "-qmp", f"unix:{self._monitor},server=on,wait=off"),
            *(self._tpm() if self.has_tpm else ()),
            *more,
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        _wait(self._process, self._port, self._folder / "console.log", patience)


_SSH_OPTIONS = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes", "IdentitiesOnly=yes")


@contextlib.contextmanager
def machine(image: Path, folder: Path, disks: t.Sequence[Disk], start: Path | None = None) -> t.Iterator[Machine]:
    """Give a running machine with new disks, its own files in `folder`; TimeoutError with its console when it does not answer.

    It goes on from `start`, one that `save_start` made, or from that of the image.
    """
    made = Machine(image, folder)
    try:
        if sum(disk.bus != "scsi" for disk in disks) <= PORTS:
            made.resume(disks, start)
        else:
            made.start(disks)
        yield made
    finally:
        made.throw_away()


def _saved_start(image: Path) -> Path:
    """Return the saved start of this image, made if need be: another image, other devices, or another QEMU, is another start."""
    built = str((image / "root.img").stat().st_mtime_ns)
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    key = hashlib.sha256("\n".join([built, qemu, *_command(image, image, PORTS)]).encode()).hexdigest()[:12]
    saved = image / f"started-{key}.qcow2"
    if not saved.exists():
        with tempfile.TemporaryDirectory(dir=image) as folder:
            made = Machine(image, Path(folder))
            try:
                made.start()
                made.save_start(saved)
            finally:
                made.throw_away()
    return saved


def _create(file: Path, *content: str) -> None:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(file), *content], check=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _command(image: Path, root: Path, ports: int) -> list[str]:
    # An emulated processor that shares its cores may take longer than the usual 90 s to find its disks, and its network.
    patient = f"systemd.default_device_timeout_sec={PATIENCE}"
    kernel = f"root=LABEL=machine-root ro console=ttyS0 net.ifnames=0 quiet panic=10 mitigations=off {patient}"
    return [
        *_hardware(ports),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd.img"), "-append", kernel),
        *("-drive", _drive("ROOT", root), "-device", "virtio-blk-pci,drive=ROOT,serial=ROOT"),
    ]


def _hardware(ports: int) -> list[str]:
    # Without cx16: emulated cmpxchg16b of QEMU 7.2 corrupts the memory of Linux 6.12.
    emulated = ("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "qemu64,cx16=off", "-smp", "2", "-m", "1024")
    slots = [word for at in range(ports) for word in ("-device", f"pcie-root-port,id=port{at},chassis={at + 1}")]
    return [
        *("qemu-system-x86_64", "-machine", "q35", *emulated, "-nodefaults", "-no-user-config", "-display", "none"),
        *("-device", "virtio-rng-pci", "-device", "virtio-net-pci,netdev=net,romfile="),
        *("-device", "virtio-scsi-pci,id=scsi", *slots),
    ]


def _uefi(folder: Path) -> list[str]:
    """Return a UEFI firmware whose memory is new: nothing is entered there."""
    shutil.copyfile(_OVMF / "OVMF_VARS_4M.fd", folder / "firmware")
    code = f"if=pflash,format=raw,unit=0,readonly=on,file={_OVMF / 'OVMF_CODE_4M.fd'}"
    return ["-drive", code, "-drive", f"if=pflash,format=raw,unit=1,file={folder / 'firmware'}"]


def _drive(serial: str, file: Path) -> str:
    # What a test writes need not survive the host. QEMU's own caches of a disk are lost with the power as a real disk's are.
    return f"if=none,id={serial},file={file},format=qcow2,discard=unmap,cache=unsafe"


def _port(disk: Disk, others: t.Sequence[Disk]) -> str:
    return "scsi.0" if disk.bus == "scsi" else f"port{sum(other.bus != 'scsi' for other in others)}"


def _device(disk: Disk, port: str) -> str:
    name = {"virtio": "virtio-blk-pci", "scsi": "scsi-hd", "nvme": "nvme"}[disk.bus]
    blocks = f"logical_block_size={disk.block},physical_block_size={disk.block}"
    likes = f",min_io_size={disk.block},opt_io_size={disk.optimal_io}" if disk.optimal_io else ""
    kind = f",rotation_rate={7200 if disk.rotational else 1},wwn={disk.wwn}" if disk.bus == "scsi" else ""
    return f"{name},id=disk-{disk.serial},bus={port},drive={disk.serial},serial={disk.serial},{blocks}{likes}{kind}"


def _typed(value: str) -> str | int:
    return int(value) if value.isdigit() else value


def _wait(process: subprocess.Popen[bytes], port: int, console: Path, patience: float) -> None:
    """Wait for the banner of sshd: QEMU takes connections long before it."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if process.poll() is not None:
            raise ChildProcessError(f"QEMU ended with {process.returncode}; it says above why")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(5)
            if connection.recv(4) == b"SSH-":
                return
        time.sleep(0.3)
    raise TimeoutError(f"no ssh within {patience:.0f} s; the console's last words: {console.read_text(errors='replace')[-800:]}")
