# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What virsh prints of nodes, domains and pools, as far as the source reads it; tests/unit/data/group/libvirt.json is recorded."""

from __future__ import annotations

import pathlib
import sys
import typing as t

GIB = 2**20
"""In KiB."""


def node(**values: t.Any) -> dict[str, t.Any]:
    """Return the answers of a node of 8 CPUs and 32 GiB."""
    machines = "".join(f"<machine maxCpus='255'>{name}</machine>" for name in values.pop("machines", ("pc-i440fx-7.2", "pc-q35-7.2")))
    kvm = "<domain type='kvm'/>" if values.pop("kvm", True) else ""
    models = "".join(
        f"<model usable='{'yes' if usable else 'no'}'>{name}</model>" for name, usable in values.pop("models", {"EPYC": True}).items()
    )
    model, flags = values.pop("host_model", ("EPYC", {"avx2": "require"}))
    features = "".join(f"<feature policy='{policy}' name='{name}'/>" for name, policy in flags.items())
    guest = f"<guest><os_type>hvm</os_type><arch name='x86_64'>{machines}<domain type='qemu'/>{kvm}</arch></guest>"
    modes = f"<mode name='host-model' supported='yes'><model fallback='forbid'>{model}</model>{features}</mode>"
    return {
        "nodeinfo": f"CPU model:           x86_64\nCPU(s):              {values.pop('cpus', 8)}\nMemory size:         {32 * GIB} KiB\n",
        "nodememstats": f"total  :  {32 * GIB} KiB\nfree   :  {30 * GIB} KiB\nbuffers:  0 KiB\ncached :  0 KiB\n",
        "freepages": "Node 0:\n4KiB: 1000\n2048KiB: 0\n1048576KiB: 0\n\n",
        "capabilities": f"<capabilities><host/>{guest}</capabilities>",
        "domcapabilities": f"<domainCapabilities><cpu>{modes}<mode name='custom'>{models}</mode></cpu></domainCapabilities>",
        "networks": "default\n",
        "snapshots": "",
        "domstats": "",
        "domains": [],
        "pools": [],
        "volumes": [],
    } | values


def domain(name: str, body: str = "", devices: str = "", **values: t.Any) -> str:
    """Return the XML of a domain of 1 GiB that runs under KVM, with elements of its own and devices."""
    kind, identity = values.get("kind", "kvm"), " id='1'" if values.get("runs", True) else ""
    uuid = values.get("uuid", "a79a5900-7452-4b32-bd5d-5fd4ec6e5ebf")
    return (
        f"<domain type='{kind}'{identity}><name>{name}</name><uuid>{uuid}</uuid><memory unit='KiB'>{values.get('memory', GIB)}</memory>"
        f"<vcpu placement='static'>{values.get('vcpus', 1)}</vcpu>"
        f"<os><type arch='x86_64' machine='{values.get('machine', 'pc-q35-7.2')}'>hvm</type></os>"
        f"{body}<devices>{devices}</devices></domain>"
    )


def disk(path: str, name: str = "vda", attributes: str = "type='file' device='disk'", more: str = "") -> str:
    """Return a disk that is a file, or what its attributes say."""
    return f"<disk {attributes}><source file='{path}'/><target dev='{name}' bus='virtio'/>{more}</disk>"


def pool(name: str, kind: str = "dir", path: str = "/images", source: str = "") -> str:
    """Return the XML of a pool of 100 GiB."""
    return (
        f"<pool type='{kind}'><name>{name}</name><uuid>82aa395b-d9be-4335-8dab-479c871bae23</uuid>"
        f"<capacity unit='bytes'>107374182400</capacity><allocation unit='bytes'>0</allocation>"
        f"<available unit='bytes'>53687091200</available><source>{source}</source>"
        f"<target><path>{path}</path></target></pool>"
    )


NFS = "<host name='nas'/><dir path='/export'/><format type='nfs'/>"

_VIRSH = f"""#!{sys.executable}
# Stands in for virsh: knows what the source asks for, and refuses all else, as virsh refuses what it does not know.
import json, os, pathlib, sys, time
folder = pathlib.Path(__file__).parent
with (folder / "log").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
quiet, connect, uri, script = sys.argv[1:]
assert (quiet, connect, os.environ["LC_ALL"]) == ("--quiet", "--connect", "C")
assert os.getsid(0) == os.getpid(), "virsh could ask at a terminal"
file = folder / uri.removeprefix("test:///")
if not file.exists():
    sys.exit("error: failed to connect to the hypervisor\\nerror: Cannot recv data: Connection refused")
answers = json.loads(file.read_text())
time.sleep(answers.get("seconds", 0))
while "endless" in answers:
    getattr(sys, answers["endless"]).write("x" * 65536)
code = 0
for command in script.split("; "):
    code = 0
    if command.startswith("echo "):
        assert not command.startswith("echo -"), "virsh takes it for an option"
        print(command[5:], end="")
    elif command in answers:
        print(answers[command])
    else:
        code = 1
        print("error: unknown command", command.split()[0], file=sys.stderr)
sys.exit(code)
"""


def install_virsh(folder: pathlib.Path) -> None:
    """Write a stand-in for virsh into a folder; a file there answers for a node, as JSON: what each command prints."""
    program = folder / "virsh"
    program.write_text(_VIRSH)
    program.chmod(0o755)
