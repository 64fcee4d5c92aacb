# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for installers is taken by the installers' own programs: ignition-validate, systemd-repart on an image file, Nix,
which reads the expressions of disko, and the code of Ceph's orchestrator.

pykickstart reads what is written for Kickstart in the unit tests; setup-storage and Ignition make disks in tests/vm.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import struct
import subprocess
import typing as t
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unit_file import unit_name
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import disko, ignition, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.ceph import write_osds
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)

Plain = dict[str, t.Any]

MIB = 1024**2
SECTOR = 512
HERE = pathlib.Path(__file__).resolve().parent
CEPH = pathlib.Path("/usr/lib/python3/dist-packages/ceph/deployment")
ENTRIES = [*(profile_plan(name) for name in profiles_of_all_targets()), data_plan(), whole_plan("uefi"), whole_plan("bios")]


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not installed; on Debian: apt-get install {package}")
    return found


@pytest.mark.parametrize("plan", ENTRIES)
def test_ignition_finds_the_configuration_valid(plan: Plain, tmp_path: pathlib.Path) -> None:
    for options in ({"key_file": None, "tpm2": True}, {"key_file": "https://example.com/key", "tpm2": False}):
        made = write_plan(ignition.TARGET, plan, None, lossy=True, **options)
        (tmp_path / "config.ign").write_text(json.dumps(made.value), encoding="utf-8")
        done = subprocess.run(
            [tool("ignition-validate", "ignition"), str(tmp_path / "config.ign")], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


def table_of(image: pathlib.Path) -> list[tuple[int, int, str, str]]:
    """Return `(begin, size)` in MiB, type and UUID of each partition of a GPT, read byte by byte."""
    data = image.read_bytes()[: 64 * SECTOR]
    assert data[SECTOR : SECTOR + 8] == b"EFI PART"
    first, count, size = struct.unpack_from("<QII", data, SECTOR + 72)
    found = []
    for number in range(count):
        entry = data[first * SECTOR + number * size :][:size]
        begin, last = struct.unpack_from("<QQ", entry, 32) if len(entry) == size else (0, 0)
        if begin:
            kind, own = (str(uuid.UUID(bytes_le=entry[at : at + 16])) for at in (0, 16))
            found.append((begin * SECTOR / MIB, (last + 1 - begin) * SECTOR / MIB, kind, own))
    return found


@pytest.mark.parametrize("plan", ENTRIES)
def test_repart_makes_the_partitions_of_each_disk(plan: Plain, tmp_path: pathlib.Path) -> None:
    for number, disk in enumerate(plan["schema"]["parteds"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = write_plan(repart.TARGET, plan, None, lossy=True, disk=disk["disk_id"], encrypt="key-file")
        for name, text in made.value.items():
            # What is put into partitions needs root and loop devices; here it is about the table.
            kept = [line for line in text.splitlines() if line.split("=")[0] not in {"Format", "Encrypt", "MountPoint"}]
            (folder / name).write_text("\n".join([*kept, ""]), encoding="utf-8")
        image = folder / "image.raw"
        call = [tool("systemd-repart", "systemd"), "--dry-run=no", "--empty=create", f"--size={disk['disk_size']}M"]
        call += [f"--definitions={folder}", "--seed=4dd4b1dcfae24e69bb90d0dd3f2aeb1d", str(image)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        head = folder / "head.raw"
        with image.open("rb") as whole:
            head.write_bytes(whole.read(64 * SECTOR))
        assert table_of(head) == [(part["begin"], part["end"] - part["begin"], part["guid"], part["uuid"]) for part in disk["partitions"]]
        image.unlink()


def test_nix_reads_the_partitions_and_volumes_of_the_plan(tmp_path: pathlib.Path) -> None:
    # Devices with other characters are refused before anything is written; a label may have them.
    one = {"id": "/dev/disk/by-id/a", "type": "ssd", "size": 20480}
    space = {"id": "or", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/a", "fs_label": 'my ${x} \\"y'}
    plans = [*ENTRIES, make_plan([space], {"ram": 4096, "firmware": "uefi", "disks": [one]})]
    texts = [write_plan(disko.TARGET, plan, None, lossy=True, password_file=None).value for plan in plans]
    (tmp_path / "plans.nix").write_text(f"[ {' '.join(f'({text})' for text in texts)} ]", encoding="utf-8")
    call = [tool("nix-instantiate", "nix-bin"), "--store", "dummy://", "--eval", "--strict", "--json", str(tmp_path / "plans.nix")]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    for plan, read in zip(plans, json.loads(done.stdout), strict=True):
        devices = read["disko"]["devices"]
        found = {
            (disk["device"], part["start"], part["size"], part["type"].lower())
            for disk in devices["disk"].values()
            for part in disk["content"]["partitions"].values()
        }
        assert found == {
            (disk["disk_id"], f"{part['begin']}M", f"{part['end'] - part['begin']}M", part["guid"].lower())
            for disk in plan["schema"]["parteds"]
            for part in disk["partitions"]
        }
        volumes = {
            (group, name): volume["size"] for group, made in devices.get("lvm_vg", {}).items() for name, volume in made["lvs"].items()
        }
        assert volumes == {(one["vgname"], one["name"]): f"{one['size']}M" for one in plan["schema"]["lvs"]}
    (content,) = [part["content"] for part in devices["disk"].popitem()[1]["content"]["partitions"].values()]
    assert content["extraArgs"] == ["-L", space["fs_label"]]


def test_names_of_units_are_systemds() -> None:
    for path in ("/var/lib/data", "/srv/my-data", "/.hidden", "/a b", "/dev/disk/by-partuuid/4d3f-ä", "/"):
        said = subprocess.run(["systemd-escape", "--path", path], capture_output=True, text=True, check=True).stdout.strip()
        assert unit_name(path) == said


def read_by_ceph(pairs: list[tuple[Plain, list[Plain]]]) -> list[Plain]:
    if not CEPH.is_dir():
        pytest.fail("Ceph's orchestrator is not installed; on Debian: apt-get install python3-ceph-common")
    call = ["/usr/bin/python3", str(HERE / "read_ceph_specification.py")]
    done = subprocess.run(call, input=json.dumps(pairs), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read: list[Plain] = json.loads(done.stdout)
    return read


def test_ceph_takes_the_disks_and_volumes_of_the_plan() -> None:
    shape = [("ssd", 48), ("ssd", 48), ("hdd", 120), ("hdd", 120), ("nvme", 80)]
    facts = hardware(shape)
    hdds = {"disks": "yaql=$.disks.where($.type = hdd)"}
    slots = [
        {"id": "fast", "type": "vg", "contains": ["ceph-db-1", "ceph-db-2"], "disks": "yaql=$.disks.where($.transport = nvme)"},
        {"id": "ceph-db-1", "type": "lv"},
        {"id": "ceph-db-2", "type": "lv"},
    ]
    plans = [profile_plan("ceph-osd"), profile_plan("ceph-osd-nvme"), make_plan([{"id": "osd", "type": "disk", **hdds}, *slots], facts)]
    made = [
        write_osds(plan, None, {"host": "node-1.example", "osds_per_device": 2 if plan is plans[0] else None, "encrypted": True}).value
        for plan in plans
    ]
    disks = [{"path": disk["id"], "rotational": disk["rotational"]} for disk in facts["disks"]]
    for spec, read in zip(made, read_by_ceph([(spec, disks) for spec in made]), strict=True):
        assert read["hosts"] == ["node-1.example"]
        for name in ("data", "db", "wal"):
            assert read[name] == spec["spec"].get(f"{name}_devices", {"paths": []})["paths"]
        assert read["data"]
        assert read["command"].startswith(f"lvm batch --no-auto {' '.join(read['data'])}")
        assert "--dmcrypt" in read["command"]
        assert ("--db-devices" in read["command"]) == bool(read["db"])
