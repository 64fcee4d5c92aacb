# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Talos Linux, by names and types of its published schema, and by its rules for names and sizes."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import talos
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan, profile_plan, profiles_of_all_targets

Plain = dict[str, t.Any]

SCHEMA = json.loads((pathlib.Path(__file__).parents[4] / "data" / "installer" / "talos.json").read_text(encoding="utf-8"))
KINDS = ("VolumeConfig", "UserVolumeConfig", "RawVolumeConfig", "SwapVolumeConfig")
ONE, TWO = hardware([("ssd", 48)]), hardware([("ssd", 48)] * 2)
FIRST, SECOND = ({"disks": f"yaql=$.disks.skip({at}).take(1)"} for at in (0, 1))
ROOT = {"id": "root", "type": "partition", "fs_type": "ext4", "mount": "/", **FIRST}
DATA = {"id": "data", "type": "partition", "fs_type": "xfs", "mount": "/var/mnt/data", **SECOND}
SYSTEM = 2202
ON_MIRRORS = ("ceph-osd-nvme", "file-server", "software-raid-boot")
TPM = {"unlock": [{"method": "tpm2", "pcrs": [7, 11]}]}


def written(schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False, passphrase: str | None = None) -> Written:
    made = write_plan(talos.TARGET, make_plan(schema, facts or TWO), None, lossy=lossy, passphrase=passphrase)
    check(made.value)
    return made


def refused(schema: list[Plain], facts: Plain | None = None, *, lossy: bool = False) -> set[str]:
    with pytest.raises(InputError) as error:
        written(schema, facts, lossy=lossy)
    return {mistake.place for mistake in error.value.mistakes}


def check(documents: list[Plain]) -> None:
    """Check documents by Talos' schema, and by what its Validate says of names, keys and sizes."""
    seen = set()
    for document in documents:
        name = "v1alpha1.Config" if "machine" in document else f"block.{document['kind']}V1Alpha1"
        jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}).validate(document)
        if "machine" in document:
            continue
        assert document["kind"] in KINDS
        assert re.fullmatch(r"EPHEMERAL" if document["kind"] == "VolumeConfig" else r"[A-Za-z0-9-]{1,34}", document["name"])
        assert (document["kind"], document["name"]) not in seen
        seen.add((document["kind"], document["name"]))
        assert document["provisioning"]["minSize"] == document["provisioning"]["maxSize"]
        if "encryption" in document:
            assert document["encryption"]["keys"]


def test_the_schema_refuses_keys_that_talos_does_not_know() -> None:
    made = written([ROOT, DATA]).value
    for at, key in enumerate(("install", "provisioning", "filesystem")):
        damaged = json.loads(json.dumps(made))
        (damaged[at]["machine"][key] if at == 0 else damaged[at].setdefault(key, {}))["unheard"] = 1
        with pytest.raises(jsonschema.ValidationError):
            check(damaged)


def test_a_system_and_a_volume_have_their_disks_and_sizes() -> None:
    plan = make_plan([ROOT, DATA], TWO)
    install, system, data = written([ROOT, DATA]).value
    assert install == {"machine": {"install": {"diskSelector": {"wwid": "naa.5000c500a1b20000"}}}}
    first, second = (disk["partitions"][-1] for disk in plan["schema"]["parteds"])
    firmware = sum(part["end"] - part["begin"] for part in plan["schema"]["parteds"][0]["partitions"][:-1])
    assert system["provisioning"]["maxSize"] == f"{firmware + first['end'] - first['begin'] - SYSTEM}MiB"
    assert system["provisioning"]["diskSelector"] == {"match": "system_disk"}
    assert (data["kind"], data["name"], data["filesystem"]) == ("UserVolumeConfig", "data", {"type": "xfs"})
    assert data["provisioning"] == {
        "diskSelector": {"match": '"/dev/disk/by-id/wwn-0x5000c500a1b20001" in disk.symlinks'},
        "minSize": f"{second['end'] - second['begin']}MiB",
        "maxSize": f"{second['end'] - second['begin']}MiB",
    }


def test_var_is_ephemeral_and_swap_and_bare_partitions_have_kinds_of_their_own() -> None:
    schema = [
        {**ROOT, "size": 4000},
        {"id": "var", "type": "partition", "size": 9000, "fs_type": "xfs", "mount": "/var", "mount_options": "nodev,nosuid,noexec"},
        {"id": "paging", "type": "partition", "size": 1024, "fs_type": "swap"},
        {"id": "for-ceph", "type": "partition", "size": 2000},
    ]
    made = written(schema, ONE)
    assert [(each["kind"], each["name"], each["provisioning"]["maxSize"]) for each in made.value[1:]] == [
        ("VolumeConfig", "EPHEMERAL", "9000MiB"),
        ("SwapVolumeConfig", "paging", "1024MiB"),
        ("RawVolumeConfig", "for-ceph", "2000MiB"),
    ]
    with pytest.raises(InputError, match="var: Talos mounts it with .* not with noatime"):
        written([schema[0], {**schema[1], "mount_options": "noatime"}], ONE)
    (*_others, data) = written([ROOT, {**DATA, "mount_options": "noatime"}]).value
    assert data["mount"] == {"disableAccessTime": True}
    assert not [warning for warning in made.warnings if "nosuid" in warning]


def test_luks_is_opened_by_a_passphrase_or_by_a_tpm() -> None:
    closed = {**DATA, "encrypt": True}
    (*_others, by_both) = written([ROOT, {**closed, **TPM}], passphrase="words").value
    assert by_both["encryption"] == {
        "provider": "luks2",
        "keys": [{"slot": 0, "tpm": {"options": {"pcrs": [7, 11]}}}, {"slot": 1, "static": {"passphrase": "words"}}],
    }
    (*_others, sealed) = written([ROOT, {**closed, **TPM}]).value
    assert len(sealed["encryption"]["keys"]) == 1
    assert refused([ROOT, closed], lossy=True) == {"data"}
    tang = {"unlock": [{"method": "tang", "url": "http://t", "thumbprint": "a" * 43}]}
    assert "data" in refused([ROOT, {**closed, **tang}])


@pytest.mark.parametrize(
    "data",
    [
        {**DATA, "mount": "/srv"},
        {"id": "data", "type": "partition", "fs_type": "xfs", **SECOND},
        {**DATA, "fs_label": "my"},
        {**DATA, "fs_options": "-m crc=1"},
        {**DATA, "mount_options": "ro"},
        {**DATA, "fs_type": "ext2"},
    ],
)
def test_what_talos_cannot_say_is_a_loss_of_its_space(data: Plain) -> None:
    assert refused([ROOT, data]) == {"data"}
    assert any(" data: " in warning for warning in written([ROOT, data], lossy=True).warnings)


def test_arrays_and_lvm_are_lost_by_their_spaces() -> None:
    array = {"id": "pair", "type": "raid", "level": "raid1", "size": 2000, "fs_type": "xfs", "mount": "/var/mnt/pair"}
    group = [{"id": "os", "type": "vg", "contains": ["log"], **SECOND}, {"id": "log", "type": "lv", "fs_type": "xfs", "mount": "/log"}]
    assert refused([{**ROOT, "size": 9000}, array, *group]) == {"pair", "os", "log"}
    made = written([{**ROOT, "size": 9000}, array, *group], lossy=True)
    assert [each["kind"] for each in made.value[1:]] == ["VolumeConfig"]


def test_too_little_room_a_system_on_two_disks_and_two_equal_names_are_errors_even_when_lossy() -> None:
    assert refused([{**ROOT, "size": 1500}, DATA], lossy=True) == {"root"}
    mirror = {"id": "root", "type": "raid", "level": "raid1", "fs_type": "ext4", "mount": "/"}
    assert refused([mirror], lossy=True) == {"root"}
    pair = [{"id": name, "type": "partition", "size": 500, **SECOND} for name in ("a_b", "a.b")]
    assert refused([ROOT, *pair], lossy=True) == {"a.b"}


def test_disks_without_a_world_wide_name_are_named_by_their_links() -> None:
    path = "/dev/disk/by-path/pci-0000:00:17.0-ata-1"
    facts = {"disks": [{"id": path, "path": path, "size": 20480}]}
    assert written([{**ROOT, "disks": [path]}], facts).value[0] == {"machine": {"install": {"disk": path}}}
    eui = {"disks": [{"id": "/dev/disk/by-id/nvme-eui.0025388b71b04b3e", "size": 20480}]}
    wanted = {"machine": {"install": {"diskSelector": {"wwid": "eui.0025388b71b04b3e"}}}}
    assert written([{**ROOT, "disks": [eui["disks"][0]["id"]]}], eui).value[0] == wanted


@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_every_profile_is_written_or_has_its_system_on_two_disks(profile: str) -> None:
    plan = profile_plan(profile)
    if profile in ON_MIRRORS:
        with pytest.raises(InputError, match="root: Talos installs on one disk"):
            write_plan(talos.TARGET, plan, None, lossy=True, passphrase="words")
        return
    made = write_plan(talos.TARGET, plan, None, lossy=True, passphrase="words").value
    check(made)
    assert "machine" in made[0]
