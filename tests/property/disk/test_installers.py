# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing of a plan is dropped in silence: every size, label, mount point and option is in what an installer reads, or is named as lost.

Labels and options are words that stand nowhere else, and sizes are numbers that no two spaces have, so that they are looked for as text.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, Written, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

Plain = dict[str, t.Any]

MIB = 1024**2
TARGETS: dict[str, tuple[Target, Plain]] = {
    "kickstart": (kickstart.TARGET, {"version": "Fedora", "passphrase": "secret"}),
    "curtin 1": (curtin.TARGET, {"version": "1", "key_file": "/key"}),
    "curtin 2": (curtin.TARGET, {"version": "2", "key_file": "/key"}),
    "ignition": (ignition.TARGET, {"key_file": None, "tpm2": True}),
    "butane": (ignition.BUTANE_TARGET, {"variant": "flatcar", "key_file": None, "tpm2": True}),
    "fai": (fai.TARGET, {"passphrase": "secret"}),
    "repart": (repart.TARGET, {"disk": None, "encrypt": "tpm2"}),
    "disko": (disko.TARGET, {"password_file": None}),
}
IN_BYTES = ("curtin 1", "curtin 2", "repart")
KINDS = ("ext4", "xfs", "vfat", "btrfs", "swap", "ext3", "f2fs")
COUNTED = {"ext3": "-N ", "ext4": "-N ", "xfs": "-d agcount=", "vfat": "-R ", "btrfs": "-n ", "f2fs": "-s "}
"""An option of each program that takes any number."""


@st.composite
def spaces(draw: st.DrawFn) -> list[Plain]:
    """Give a schema for three disks; the number of a space is in all of its words, and in its size."""
    made: list[Plain] = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        kind = draw(st.sampled_from(["partition", "partition", "raid", "vg"]))
        space: Plain = {"id": f"s{number}", "type": kind, "size": 800 + 104 * number + number % 3 * 4}
        if kind == "raid":
            space |= {"level": draw(st.sampled_from(["raid0", "raid1"])), "legs": 2}
        if kind == "vg":
            thin = draw(st.integers(0, 3)) == 0
            inside = f"p{number}" if thin else space["id"]
            made.append({"id": f"g{number}", "type": "vg", "contains": [inside], "encrypt": draw(st.booleans())})
            made += [{"id": inside, "type": "thin_pool", "contains": [space["id"]]}] if thin else []
            if not thin and draw(st.integers(0, 5)) == 0:
                made.append({"id": f"c{number}", "type": "partition", "size": 300 + number, "cache_of": space["id"]})
            space["type"] = "thin" if thin else "lv"
        made.append(space | draw(content(number, kind)))
    return made


@st.composite
def content(draw: st.DrawFn, number: int, kind: str) -> Plain:
    if draw(st.integers(0, 9)) == 0:
        return {}
    keys: Plain = {"fs_type": draw(st.sampled_from(KINDS))}
    if keys["fs_type"] != "swap" and draw(st.integers(0, 4)):
        keys["mount"] = f"/m{number}m"
        keys |= {"mount_options": f"x-o{number}o"} if draw(st.booleans()) else {}
    if keys["fs_type"] == "btrfs" and draw(st.booleans()):
        limit = {"quota": 500 + number} if draw(st.integers(0, 3)) == 0 else {}
        keys["subvolumes"] = [{"name": f"@v{number}v", "mount": f"/v{number}v", **limit}]
    keys |= {"fs_label": f"L{number}L"} if draw(st.booleans()) else {}
    if keys["fs_type"] in COUNTED and draw(st.integers(0, 3)) == 0:
        keys["fs_options"] = f"{COUNTED[keys['fs_type']]}{7000 + number}"
    return keys | ({"encrypt": True} if kind == "partition" and draw(st.integers(0, 3)) == 0 else {})


def wanted(plan: Plain, name: str) -> set[str]:
    """Return all words of a plan that have to stand in what is written."""
    words: set[str] = set()
    for disk in plan["schema"]["parteds"]:
        # repart is told on which disk it runs by whoever runs it.
        words |= {disk["disk_id"].removeprefix("/dev/")} if name != "repart" else set()
        words |= {sized(part["end"] - part["begin"], name) for part in disk["partitions"]}
    words |= {sized(volume["size"], name) for volume in plan["schema"]["lvs"]}
    for pool in plan["schema"].get("thin_pools", ()):
        words |= {sized(pool[key], name) for key in ("size", "metadata_size", "chunk_size")}
    for entry in plan["schema"]["fss"]:
        words |= {entry[key] for key in ("fs_label",) if entry[key]}
        words |= {word.rpartition("=")[2] for word in entry["fs_options"].split() if not word.startswith("-")}
        words |= {word for one in entry.get("subvolumes") or () for word in (one["mount"], one["name"])}
        words |= {entry["mount"]} if entry["mount"].startswith("/") else set()
        words |= {entry["fstab_options"]} if entry["fstab_options"].startswith("x-") else set()
    return words


def sized(size: int, name: str) -> str:
    return str(size * MIB if name in IN_BYTES else size)


def attempt(target: Target, plan: Plain, options: Plain) -> Written | InputError:
    try:
        return write_plan(target, plan, None, lossy=False, **options)
    except InputError as error:
        return error


@settings(deadline=None, max_examples=examples(60))
@given(schema=spaces())
def test_all_words_of_a_plan_are_written_or_their_space_is_named(schema: list[Plain]) -> None:
    plan = make_plan(schema, hardware([("ssd", 20), ("ssd", 21), ("ssd", 22)]))
    named = {"disk", *(space["id"] for space in schema)}
    for name, (target, options) in TARGETS.items():
        written = attempt(target, plan, options)
        if isinstance(written, InputError):
            assert {mistake.place for mistake in written.mistakes} <= named, name
            continue
        text = written.value if isinstance(written.value, str) else json.dumps(written.value)
        found = set(re.split(r'[\s"\'\\=:,;\[\]]+', text.replace("/dev/", ""))) | set(re.findall(r"[0-9]+", text))
        found |= {word.lstrip("/") for word in found}
        missing = {word for word in wanted(plan, name) if word not in found}
        assert not missing, f"{name}: {missing} of\n{text}"


def test_the_words_that_are_looked_for_are_those_of_the_plan() -> None:
    schema = [
        {"id": "s1", "type": "partition", "size": 900, "fs_type": "xfs", "mount": "/m1m", "mount_options": "x-o1o", "fs_label": "L1L"}
    ]
    plan = make_plan(schema, hardware([("ssd", 20)]))
    assert wanted(plan, "fai") == {"disk/by-id/wwn-0x5000c500a1b20000", "900", "/m1m", "x-o1o", "L1L"}
    assert str(900 * MIB) in wanted(plan, "repart")
