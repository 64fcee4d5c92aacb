# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for FAI; setup-storage itself carries it out in tests/vm."""

from __future__ import annotations

import copy
import re
import typing as t
from collections.abc import Iterator

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import fai
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)

Plain = dict[str, t.Any]


def written(plan: Plain, *, lossy: bool = False, passphrase: str | None = None) -> Written:
    return write_plan(fai.TARGET, plan, None, lossy=lossy, passphrase=passphrase)


def sections(text: str) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for line in filter(None, text.splitlines()):
        first, *words = line.split(" ")
        if first == "disk_config":
            lines = found.setdefault(words[0], [])
        else:
            lines.append([first, *words])
    return found


@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_sizes_and_mounts_are_those_of_the_plan(profile: str) -> None:
    plan = profile_plan(profile)
    made = written(plan, lossy=True)
    dashed = {volume["space_id"] for volume in plan["schema"]["lvs"] if "-" in volume["name"]}
    lost = {warning.split(": ")[1] for warning in made.warnings if "allows no dash" in warning}
    assert lost == dashed
    found = sections(made.value)
    for disk in plan["schema"]["parteds"]:
        sizes = [int(line[2]) for line in found[disk["name"]]]
        assert sizes == [part["end"] - part["begin"] for part in disk["partitions"]]
    volumes = {line[0]: int(line[2].split("-")[-1]) for line in found.get("lvm", []) if line[0] != "vg"}
    assert volumes == {f"{volume['vgname']}-{volume['name'].replace('-', '_')}": volume["size"] for volume in plan["schema"]["lvs"]}
    mounts = {line[1] for lines in found.values() for line in lines if line[1].startswith("/") and line[0] != "vg"}
    assert mounts == {entry["mount"] for entry in plan["schema"]["fss"] if entry["mount"].startswith("/")}


def test_arrays_have_numbers_luks_comes_between_and_bios_boot_is_implied() -> None:
    found = sections(written(whole_plan("bios"), lossy=True, passphrase="secret").value)
    first, second = whole_plan("bios")["schema"]["parteds"]
    assert [line[0] for line in found[first["name"]]] == ["p=boot-1", "p=mirror-1"]
    # BIOS boot is made by setup-storage after all others, so that these have the numbers that arrays name.
    assert found["raid"][0][2] == f"{first['name']}-part1,{second['name']}-part1"
    assert found["cryptsetup"] == [['luks:"secret"', "-", "/dev/md1", "-", "-"]]
    assert found["lvm"][0] == ["vg", "os", "/dev/md1"]


def test_names_that_its_grammar_cannot_hold_are_losses() -> None:
    schema = [
        {"id": "my-vg", "type": "vg", "contains": ["a-b"]},
        {"id": "a-b", "type": "lv", "size": 512, "fs_type": "ext4", "mount": "/a"},
    ]
    plan = make_plan(schema, hardware([("ssd", 10)]))
    with pytest.raises(InputError) as caught:
        written(plan)
    assert {mistake.place for mistake in caught.value.mistakes} == {"my-vg", "a-b"}
    assert [line[0] for line in sections(written(plan, lossy=True).value)["lvm"]] == ["vg", "my_vg-a_b"]


def test_options_of_file_systems_are_passed_on() -> None:
    text = written(data_plan()).value
    assert 'p=data /srv 3000 xfs defaults createopts="-L data -m crc=1"' in text
    assert "p=logs /var/log 2000 ext4 nodev,noexec" in text
    assert 'p=paging swap 512 swap sw createopts="-L paging"' in text


def with_volumes(size: int, *more: Plain) -> Plain:
    """Return a plan of a group on a mirror of 5000 MiB whose first volume has a size."""
    schema = [
        {"id": "pair", "type": "raid", "level": "raid1", "legs": 2, "size": 5000},
        {"id": "os", "type": "vg", "contains": ["pair", "big", *(volume["id"] for volume in more)]},
        {"id": "big", "type": "lv", "size": size, "fs_type": "ext4", "mount": "/big"},
        *more,
    ]
    return make_plan(schema, hardware([("ssd", 10), ("ssd", 10)]))


def test_a_group_has_one_part_in_a_hundred_that_setup_storage_gives_nobody() -> None:
    plan = with_volumes(4900, {"id": "small", "type": "lv", "size": 84, "fs_type": "ext4", "mount": "/small"})
    (mirror,) = {part["end"] - part["begin"] for disk in plan["schema"]["parteds"] for part in disk["partitions"]}
    room = max(size for size in range(mirror) if size < 0.99 * mirror)
    over = 4900 + 84 - room
    assert over > 0
    with pytest.raises(InputError) as caught:
        written(plan)
    assert str(caught.value).startswith(f"big: setup-storage keeps 1 % of a volume group to itself, so volumes get {room} MiB of os")
    made = written(plan, lossy=True)
    assert f"{over} MiB of big are missing" in made.warnings[0]
    lines = {line[0]: line[2] for line in sections(made.value)["lvm"] if line[0] != "vg"}
    assert lines == {"os-big": f"{4900 - over}-4900", "os-small": "84"}
    assert not any("missing" in warning for warning in written(with_volumes(4000)).warnings)


def test_a_type_that_says_more_than_what_lies_there_is_a_loss() -> None:
    plan = data_plan()
    part = {**plan["schema"]["parteds"][0]["partitions"][0], "guid": "9e1a2d38-c612-4316-aa26-8b49521e5a8b"}
    disk = {**plan["schema"]["parteds"][0], "partitions": [part, *plan["schema"]["parteds"][0]["partitions"][1:]]}
    with pytest.raises(InputError, match="logs: its type is 9e1a2d38-c612-4316-aa26-8b49521e5a8b; setup-storage sets types by what lies"):
        written({**plan, "schema": {**plan["schema"], "parteds": [disk, *plan["schema"]["parteds"][1:]]}})


@pytest.mark.parametrize("letter", "$`;&|<>(){}*?!'\"\\~#")
def test_a_mount_point_that_a_shell_would_read_is_refused(letter: str) -> None:
    """The second file system is looked at as the first is."""
    places = {"plain": "/plain", "odd": f"/a{letter}b"}
    schema = [{"id": name, "type": "partition", "size": 512, "fs_type": "ext4", "mount": place} for name, place in places.items()]
    with pytest.raises(InputError) as caught:
        written(make_plan(schema, hardware([("ssd", 10)])), lossy=True)
    assert [mistake.place for mistake in caught.value.mistakes] == ["odd"]


def _texts(data: t.Any, place: tuple[t.Any, ...] = ()) -> Iterator[tuple[t.Any, ...]]:
    """Give the place of each text in plain data."""
    if isinstance(data, str):
        yield place
    for key, item in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _texts(item, (*place, key))


@pytest.mark.parametrize("hostile", ["$(touch x)", "`touch x`", ";touch x", "~"])
def test_nothing_of_a_plan_is_written_that_a_shell_would_read(hostile: str) -> None:
    """setup-storage runs its commands in a shell, so what a plan says anywhere is refused, lost or quoted."""
    refused = 0
    for firmware in ("bios", "uefi"):
        plan = whole_plan(firmware)
        for place in _texts(plan["schema"]):
            changed = copy.deepcopy(plan)
            holder: t.Any = changed["schema"]
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] += hostile
            try:
                text = written(changed, lossy=True).value
            except InputError:
                refused += 1
                continue
            unquoted = re.sub(r"'[^'\n]*'", "''", text)
            assert not re.search(r"[$`;&|<>(){}\\]|(^|[\s=\"])~", unquoted), (place, text)
    assert refused > 20
