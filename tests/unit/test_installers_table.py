# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of what installers can express says what the filters do: `yes` is written, `no` is refused, or is not in what is written."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]

TEXT = (pathlib.Path(__file__).parents[2] / "docs" / "installers.md").read_text(encoding="utf-8")
TARGETS: dict[str, list[tuple[Target, Plain]]] = {
    "Kickstart": [(kickstart.TARGET, {"version": "Fedora", "passphrase": "secret"})],
    "curtin": [(curtin.TARGET, {"version": "2", "key_file": "/key"})],
    "Ignition, Butane": [
        (ignition.TARGET, {"key_file": None, "tpm2": True}),
        (ignition.BUTANE_TARGET, {"variant": "fcos", "key_file": None, "tpm2": True}),
    ],
    "FAI": [(fai.TARGET, {"passphrase": None})],
    "systemd-repart": [(repart.TARGET, {"disk": None, "encrypt": "tpm2"})],
    "disko": [(disko.TARGET, {"password_file": None})],
}
PREP = "9e1a2d38-c612-4316-aa26-8b49521e5a8b"
DATA = {"id": "data", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/data"}


def plan(*spaces: Plain, disks: int = 1) -> Plain:
    return make_plan(list(spaces), hardware([("ssd", 10)] * disks))


def of_partition(**keys: t.Any) -> Plain:
    """Return a plan of one partition, with other keys in it than those that it was planned with."""
    made = plan({**DATA, "size": 1000})
    (disk,) = made["schema"]["parteds"]
    part = {**disk["partitions"][0], **keys}
    return {**made, "schema": {**made["schema"], "parteds": [{**disk, "partitions": [part]}]}}


def with_gap() -> Plain:
    """Return a plan with room between two partitions."""
    made = plan(DATA, {**DATA, "id": "more", "mount": "/more"})
    (disk,) = made["schema"]["parteds"]
    first, second = disk["partitions"]
    second = {**second, "begin": second["begin"] + 100, "end": second["end"] + 100}
    return {**made, "schema": {**made["schema"], "parteds": [{**disk, "partitions": [first, second]}]}}


def with_metadata(version: str) -> Plain:
    """Return a plan of a mirror with a version of md's metadata."""
    made = plan(PAIR, disks=2)
    return {**made, "schema": {**made["schema"], "mds": [{**made["schema"]["mds"][0], "metadata": version}]}}


def with_uuid(uuid: str) -> Plain:
    """Return a plan of one partition whose file system has a UUID."""
    made = plan(DATA)
    return {**made, "schema": {**made["schema"], "fss": [{**made["schema"]["fss"][0], "uuid": uuid}]}}


PAIR = {"id": "pair", "type": "raid", "level": "raid1", "legs": 2, "size": 1000, "fs_type": "ext4", "mount": "/pair"}
WRITTEN: dict[str, list[Plain]] = {
    "several disks in one plan": [plan(DATA, {**DATA, "id": "more", "mount": "/more", "size": 10000}, disks=2)],
    "where partitions begin": [with_gap()],
    "md arrays": [plan(PAIR, disks=2)],
    "bitmaps of md": [plan({**PAIR, "bitmap": "none"}, disks=2)],
    "write-mostly members of md": [plan({**PAIR, "write_mostly": "yaql=$.disks.take(1)"}, disks=2)],
    "chunks of md": [plan({**PAIR, "level": "raid0", "chunk": "64 KiB"}, disks=2)],
    "layouts of md": [plan({**PAIR, "level": "raid10", "layout": "f2"}, disks=2)],
    "LVM": [plan({"id": "os", "type": "vg", "contains": ["root"]}, {**DATA, "id": "root", "type": "lv"})],
    "extents of LVM": [
        plan({"id": "os", "type": "vg", "contains": ["root"], "extent_size": 32}, {**DATA, "id": "root", "type": "lv", "size": 1024})
    ],
    "stripes of LVM": [
        plan({"id": "os", "type": "vg", "contains": ["root"]}, {**DATA, "id": "root", "type": "lv", "stripes": 2, "size": 1024}, disks=2)
    ],
    "thin pools of LVM": [
        plan(
            {"id": "os", "type": "vg", "contains": ["pool"]},
            {"id": "pool", "type": "thin_pool", "contains": ["root"]},
            {**DATA, "id": "root", "type": "thin"},
        )
    ],
    "caches of LVM": [
        plan(
            {"id": "os", "type": "vg", "contains": ["root"], "max_pvs": 1},
            {**DATA, "id": "root", "type": "lv"},
            {"id": "fast", "type": "partition", "size": 500, "cache_of": "root"},
        )
    ],
    "ZFS pools": [plan({"id": "tank", "type": "zpool", "datasets": [{"name": "home", "mount": "/home"}]}, disks=2)],
    "LUKS": [plan({**DATA, "encrypt": True})],
    "`unlock` by a TPM": [plan({**DATA, "encrypt": True, "unlock": [{"method": "tpm2"}]})],
    "`unlock` by a TPM with a PIN": [plan({**DATA, "encrypt": True, "unlock": [{"method": "tpm2", "pin": True}]})],
    "`unlock` by Tang": [plan({**DATA, "encrypt": True, "unlock": [{"method": "tang", "url": "http://t", "thumbprint": "A" * 43}]})],
    "`unlock` by a key file, a recovery key": [
        plan({**DATA, "encrypt": True, "unlock": [method]}) for method in ({"method": "key_file", "path": "/k"}, {"method": "recovery"})
    ],
    "ext2, ext3": [plan({**DATA, "fs_type": kind}) for kind in ("ext2", "ext3")],
    "ext4, xfs, vfat, swap": [plan({**DATA, "fs_type": kind}) for kind in ("ext4", "xfs", "vfat")]
    + [plan({"id": "swap", "type": "partition", "size": 1000, "fs_type": "swap"})],
    "btrfs": [plan({**DATA, "fs_type": "btrfs"})],
    "btrfs on several disks": [plan({"id": "data", "type": "btrfs", "size": 1000, "mount": "/data"}, disks=2)],
    "subvolumes of btrfs": [plan({**DATA, "fs_type": "btrfs", "fs_label": "data", "subvolumes": [{"name": "@", "mount": "/at"}]})],
    "quotas of subvolumes": [plan({**DATA, "fs_type": "btrfs", "subvolumes": [{"name": "@", "mount": "/at", "quota": 500}]})],
    "f2fs": [plan({**DATA, "fs_type": "f2fs"})],
    "labels": [plan({**DATA, "fs_label": "words"})],
    "options of mkfs": [plan({**DATA, "fs_options": "-m 1"})],
    "options of mounts": [plan({**DATA, "mount_options": "noatime"})],
    "made, but not mounted": [plan({key: value for key, value in DATA.items() if key != "mount"})],
    "nothing on it": [plan({"id": "data", "type": "partition", "size": 1000})],
    "ESP, BIOS boot": [plan({"id": "esp", "type": "esp", "size": 512, "mount": "/boot/efi"}), plan({"id": "grub", "type": "bios_grub"})],
    "`keep_data`": [of_partition(keep_data=True)],
}
# Where a target makes what it makes and says nothing of it, the words are looked for.
WORDS: dict[str, tuple[Plain, str]] = {
    "flag `legacy_boot`": (of_partition(flags=["legacy_boot"]), "flags=0x4"),
    "names of LUKS containers": (plan({**DATA, "encrypt": True}), "data-crypt"),
    "UUIDs of file systems": (with_uuid("0f31cc3b-d2c4-4af9-8a35-a2ab05e7f3f0"), "0f31cc3b-d2c4-4af9-8a35-a2ab05e7f3f0"),
    "UUIDs of partitions": (of_partition(uuid="603baf1c-1ae0-541f-b2e1-b3d3fefceca8"), "603baf1c-1ae0-541f-b2e1-b3d3fefceca8"),
    "types of partitions": (of_partition(guid=PREP), PREP),
    "names of partitions": (of_partition(partition_label="bulk-store"), "bulk-store"),
    "version of md's metadata": (with_metadata("1.0"), "1.0"),
}


def table() -> dict[str, dict[str, str]]:
    """Return the cells of the table by row and target."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("|")]
    head = next(at for at, row in enumerate(rows) if row[1] == "Kickstart")
    end = next(at for at, row in enumerate(rows) if row[0] == "`keep_data`")
    return {row[0]: dict(zip(rows[head][1:], row[1:])) for row in rows[head + 3 : end + 1]}


def expressed(target: Target, options: Plain, made: Plain) -> str | None:
    """Return what is written, or None where that is refused."""
    try:
        written = write_plan(target, made, None, lossy=False, **options)
    except InputError:
        return None
    # Some do otherwise what they have no words for; then they say so.
    return None if any("metadata" in warning for warning in written.warnings) else json.dumps(written.value).lower()


@pytest.mark.parametrize("row", [*WRITTEN, *WORDS])
@pytest.mark.parametrize("column", TARGETS)
def test_a_cell_says_what_the_filter_does(row: str, column: str) -> None:
    says = table()[row][column].split(",")[0].split(" ")[0].split(";")[0]
    assert says in ("yes", "no")
    for target, options in TARGETS[column]:
        if row in WORDS:
            made, word = WORDS[row]
            found = expressed(target, options, made)
            assert (found is not None and word in found) == (says == "yes"), found
        else:
            results = [expressed(target, options, made) for made in WRITTEN[row]]
            assert all(result is not None for result in results) == (says == "yes"), results
            assert any(result is None for result in results) == (says == "no"), results


def test_every_row_is_looked_at() -> None:
    assert set(table()) == {*WRITTEN, *WORDS}
