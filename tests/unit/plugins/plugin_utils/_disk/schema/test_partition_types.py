# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types and names of partitions as somebody wants them: what is planned and made, and what is refused."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage import gpt
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan

Plain = dict[str, t.Any]

HOME: Plain = {"id": "homes", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/home"}
WINDOWS_RECOVERY = "de94bba4-06d1-4d40-a16a-bfd50179d6ac"


def plan(*schema: Plain, disks: int = 1, **facts: t.Any) -> Plain:
    return make_plan(list(schema), {"disks": [{"id": name, "size": 50_000, **facts} for name in "abc"[:disks]]})


def parts(planned: Plain) -> list[Plain]:
    return [part for table in planned["schema"]["parteds"] for part in table["partitions"]]


@pytest.mark.parametrize(
    ("written", "guid"),
    [("home", gpt.DISCOVERABLE["home"]), (" Root-x86-64 ", gpt.DISCOVERABLE["root-x86-64"]), (WINDOWS_RECOVERY.upper(), WINDOWS_RECOVERY)],
)
def test_a_type_by_its_name_or_guid(written: str, guid: str) -> None:
    (part,) = parts(plan({**HOME, "partition_type": written}))
    assert (part["guid"], part["flags"], part["space_id"]) == (guid, [], "homes")
    (made,) = parse_static_schema(plan({**HOME, "partition_type": written})["schema"]).partitions()
    assert (made.type, made.label) == (guid, "homes")


def test_what_is_encrypted_keeps_the_type_that_is_wanted() -> None:
    (part,) = parts(plan({**HOME, "encrypt": True, "partition_type": "home"}))
    assert part["guid"] == gpt.DISCOVERABLE["home"]
    assert parts(plan({**HOME, "encrypt": True}))[0]["guid"] == gpt.LUKS


def test_a_name_of_its_own() -> None:
    planned = plan({**HOME, "partition_label": "People's homes"})
    (made,) = parse_static_schema(planned["schema"]).partitions()
    assert made.label == "People's homes"
    assert "partition_label" not in parts(plan(HOME))[0]


def test_copies_have_numbers_in_their_names() -> None:
    planned = plan({**HOME, "mount": "none", "count": 2, "partition_label": "x" * 36, "partition_type": "srv"}, disks=2)
    assert [(part["partition_label"], part["guid"]) for part in parts(planned)] == [
        ("x" * 35 + "1", gpt.DISCOVERABLE["srv"]),
        ("x" * 35 + "2", gpt.DISCOVERABLE["srv"]),
    ]


def test_what_has_that_name_is_kept() -> None:
    there = {"partitions": [{"name": "people", "number": 3, "start": 7, "size": 2000}]}
    (part,) = parts(plan({**HOME, "size": 2000, "partition_label": "people", "keep_data": True}, **there))
    assert (part["count"], part["begin"], part["keep_data"]) == (3, 7, True)


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(
            {**HOME, "partition_type": "hoem", "partition_label": "x" * 37},
            {**HOME, "id": "b", "mount": "none", "partition_type": "root"},
            {**HOME, "id": "c", "mount": "none", "partition_type": gpt.RAID, "partition_label": 'a"b'},
            {"id": "d", "type": "vg", "partition_type": "home"},
            {**HOME, "id": "e", "mount": "none", "partition_type": "var", "mirror": "required"},
        )
    said = {mistake.place: mistake.says for mistake in caught.value.mistakes}
    assert said["schema[0].partition_type"].startswith("there is no type 'hoem' (did you mean home?); there are home, linux-generic, ")
    assert said["schema[0].partition_label"].endswith("is too long; the name of a partition has at most 36 characters")
    assert said["schema[1].partition_type"].startswith("'root' differs on every kind of machine; there are root-arm, ")
    assert said["schema[2].partition_type"] == f"'{gpt.RAID}' is what a space of type: raid has; change its type"
    assert said["schema[2].partition_label"] == "'a\"b' has quotation marks, or what cannot be printed; leave them out"
    assert said["schema[3].partition_type"] == "makes no sense for the type vg; it is for partition, partitions"
    assert said["schema[4].mirror"] == "cannot be combined with partition_type; leave one of them out"


def test_hosts_refuse_names_without_room() -> None:
    planned = plan(HOME)
    planned["schema"]["parteds"][0]["partitions"][0]["partition_label"] = "x" * 37
    with pytest.raises(SchemaMistakes, match=r"parteds\[0\].partitions\[0\].partition_label: .* is too long"):
        parse_static_schema(planned["schema"])


def test_repart_has_one_name_for_partition_and_file_system() -> None:
    options = {"disk": None, "encrypt": "tpm2"}
    with pytest.raises(InputError, match="homes: systemd-repart names a partition as its file system, files, not people"):
        write_plan(repart.TARGET, plan({**HOME, "fs_label": "files", "partition_label": "people"}), None, lossy=False, **options)
    (text,) = write_plan(repart.TARGET, plan({**HOME, "partition_label": "people"}), None, lossy=False, **options).value.values()
    assert "\nLabel=people\n" in text
