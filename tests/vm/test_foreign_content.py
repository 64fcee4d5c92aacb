# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing that is not named is destroyed: each content of `foreign_content`, on disks with and without marks of ours, outlives every run.

A run refuses, has no steps, writes nothing, and says so in check mode as well; a permission for another disk, or to remove what is not
listed, changes none of it. The kernel, md, LIO and udev are real.
"""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.vm.foreign_content import FOREIGN, Foreign
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
ONE, TWO, OTHER = (Disk(serial, 400 * MIB, "scsi") for serial in ("ONE", "TWO", "OTHER"))
Plain = dict[str, t.Any]
Plugged = t.Callable[[t.Sequence[Disk]], LayoutHost]

_OPTIONS: tuple[Plain, ...] = ({}, {"wipe": [OTHER.link]}, {"wipe": [OTHER.link], "keep_unlisted": False})
_CHECK = {"_ansible_check_mode": True, "_ansible_diff": True}
RUNS = [{**options, **mode} for options in _OPTIONS for mode in (_CHECK, {})]


def on_partitions() -> Plain:
    """A file system on each disk, and room behind it."""
    return {
        "parteds": [_table(disk) for disk in (ONE, TWO)],
        "fss": [{"device": f"{disk.link}-part1", "fs_type": "ext4", "mount": f"/srv/{disk.serial}"} for disk in (ONE, TWO)],
    }


def on_mirror() -> Plain:
    """A file system on an array of both disks."""
    members = [f"{disk.link}-part1" for disk in (ONE, TWO)]
    return {
        "parteds": [_table(disk) for disk in (ONE, TWO)],
        "mds": [{"name": "/dev/md/ours", "level": "raid1", "devices": members, "spares": [], "metadata": "1.2"}],
        "fss": [{"device": "/dev/md/ours", "fs_type": "ext4", "mount": "/srv/ours"}],
    }


def _table(disk: Disk) -> Plain:
    part = {"name": f"{disk.link}-part1", "count": 1, "begin": 1, "end": 301, "space_id": "data"}
    return {"name": disk.link, "disk_id": disk.link, "partitions": [part]}


SCHEMAS = {"partitions": on_partitions, "mirror": on_mirror}


@pytest.mark.parametrize("marks", ["none", *SCHEMAS])
@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda foreign: foreign.name)
def test_foreign_content_outlives_every_run(layout_host: Plugged, foreign: Foreign, marks: str) -> None:
    """With `marks` the disks have carried that layout of ours, of which each tool leaves what it leaves."""
    host = layout_host([ONE, TWO, OTHER])
    if marks != "none":
        _retire(host, SCHEMAS[marks]())
    _script(host, "head -c 4194304 /dev/urandom >$MARK; sync")
    _script(host, f"{foreign.make}\nsync")
    schema = SCHEMAS["partitions" if marks == "none" else marks]()
    # The disk that `wipe` names is one of the schema, for all others are refused there.
    schema["parteds"].append(_table(OTHER))
    written = host.machine.written([ONE, TWO, OTHER])
    for options, result in zip(RUNS, host.attempt_each(schema, RUNS), strict=True):
        assert result.get("failed"), (options, result)
        assert (result.get("steps", []), result.get("destroys", []), result["changed"]) == ([], [], False), (options, result)
    if foreign.rests:
        assert host.machine.written([ONE, TWO, OTHER]) == written
    _script(host, foreign.whole)


def _retire(host: LayoutHost, schema: Plain) -> None:
    """Make a layout of ours and give it up as people do: it is stopped, and its disks are used for something else."""
    host.apply(schema)
    host.shell(f"""
mdadm --stop --scan
udevadm settle
for disk in {ONE.link} {TWO.link}; do wipefs --all --quiet $disk-part1; partx --delete $disk || true; done
udevadm settle
""")


def _script(host: LayoutHost, script: str) -> None:
    host.shell(f"A={ONE.link} B={TWO.link} MARK=/root/mark\n{script}")
