# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Profiles and overrides."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import find_profile, load_profile, merge

BASE = [
    {"id": "os", "type": "vg", "contains": [{"id": "root"}, "home"]},
    {"id": "root", "type": "lv", "min_size": 10, "max_size": 20, "mount": "/"},
    {"id": "home", "type": "lv", "size": 5},
]


def test_a_profile_is_found_by_name_or_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "web.yml").write_text("[]", encoding="utf-8")
    assert find_profile("web", tmp_path, [pathlib.Path("/")]) == tmp_path / "web.yml"
    assert find_profile("./web.yml", pathlib.Path("/nowhere"), [tmp_path]) == tmp_path / "web.yml"
    assert find_profile(str(tmp_path / "web.yml"), pathlib.Path("/nowhere"), [pathlib.Path("/")]) == tmp_path / "web.yml"


def test_a_path_is_looked_for_beside_the_playbook_and_then_where_the_command_was_given(tmp_path: pathlib.Path) -> None:
    playbooks, here = tmp_path / "playbooks", tmp_path / "here"
    for folder in (playbooks, here):
        folder.mkdir()
    (here / "web.yml").write_text("[]", encoding="utf-8")
    assert find_profile("web.yml", tmp_path, [playbooks, here]) == here / "web.yml"
    (playbooks / "web.yml").write_text("[]", encoding="utf-8")
    assert find_profile("web.yml", tmp_path, [playbooks, here]) == playbooks / "web.yml"
    with pytest.raises(InputError, match=f"there is no file '{playbooks}/db.yml' or '{here}/db.yml'"):
        find_profile("db.yml", tmp_path, [playbooks, here])


def test_an_unknown_profile_names_those_that_there_are(tmp_path: pathlib.Path) -> None:
    (tmp_path / "database.yml").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"no profile 'databse' \(did you mean database\?\); there are database"):
        find_profile("databse", tmp_path, [tmp_path])
    with pytest.raises(InputError, match="there is no file"):
        find_profile("sub/databse", tmp_path, [tmp_path])


@pytest.mark.parametrize("text", ["- {id: a, type: lv}\n", "description: d\nwhy: {a: because}\nschema:\n  - {id: a, type: lv}\n"])
def test_a_profile_is_a_list_or_has_one(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "p.yml").write_text(text, encoding="utf-8")
    assert load_profile(tmp_path / "p.yml") == [{"id": "a", "type": "lv"}]


LAUGHTER = "".join(f"  - &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 12))
"""Each list holds the one before nine times."""


@pytest.mark.parametrize(
    "text",
    [
        f"schema:\n  - &a0 [x]\n{LAUGHTER}",
        "schema:\n  - &space {id: a, type: lv, more: *space}\n",
        "why: &why {a: *why}\nschema: []\n",
        f"schema: {'[' * 60}{']' * 60}\n",
        f"why: {{a: &a {'x' * 100_000}, b: [{', '.join(['*a'] * 200)}]}}\nschema: []\n",
    ],
    ids=["laughter", "a space in itself", "a reason in itself", "deep", "long"],
)
def test_aliases_do_not_make_a_profile_endless(tmp_path: pathlib.Path, text: str) -> None:
    """Who wrote it may be anybody, and the controller would be busy until it has no memory left."""
    (tmp_path / "p.yml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"^profile p\.yml: cannot be read: "):
        load_profile(tmp_path / "p.yml")


def test_aliases_stand_for_what_they_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "p.yml").write_text("- &a {id: a, type: lv}\n- {<<: *a, id: b}\n", encoding="utf-8")
    assert load_profile(tmp_path / "p.yml") == [{"id": "a", "type": "lv"}, {"id": "b", "type": "lv"}]


@pytest.mark.parametrize(
    ("text", "says"), [("schema: 5\n", "has a number"), ("a: b\n", "has nothing"), ("a: [\n", "cannot be read"), ("", "has nothing")]
)
def test_a_broken_profile(tmp_path: pathlib.Path, text: str, says: str) -> None:
    (tmp_path / "p.yml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"profile p.yml: {says}"):
        load_profile(tmp_path / "p.yml")


def test_only_the_keys_that_are_there_change() -> None:
    before = copy.deepcopy(BASE)
    merged = merge(BASE, [{"id": "root", "max_size": 30, "fs_type": "xfs", "state": "present"}])
    assert merged == [BASE[0], {**BASE[1], "max_size": 30, "fs_type": "xfs"}, BASE[2]]
    assert before == BASE


def test_a_size_replaces_bounds_and_the_other_way_round() -> None:
    merged = merge(BASE, [{"id": "root", "size": 15}, {"id": "home", "min_size": 1}])
    assert merged[1] == {"id": "root", "type": "lv", "mount": "/", "size": 15}
    assert merged[2] == {"id": "home", "type": "lv", "min_size": 1}


def test_what_is_absent_leaves_its_group_as_well() -> None:
    assert merge(BASE, [{"id": "home", "state": "absent"}]) == [{"id": "os", "type": "vg", "contains": [{"id": "root"}]}, BASE[1]]


def test_new_spaces_come_last() -> None:
    merged = merge(
        BASE, [{"id": "data", "type": "partition"}, {"id": "os", "contains": ["root", "home", "log"]}, {"id": "log", "type": "lv"}]
    )
    assert [entry["id"] for entry in merged] == ["os", "root", "home", "data", "log"]
    assert merged[0]["contains"] == ["root", "home", "log"]


@pytest.mark.parametrize(
    ("overrides", "place", "says"),
    [
        ({}, "overrides", "is a mapping"),
        (["root"], "overrides[0]", "must be a mapping with id"),
        ([{"size": 5}], "overrides[0].id", "is missing"),
        ([{"id": "rot", "size": 5}], "overrides[0].id", "did you mean root?"),
        ([{"id": "rot", "state": "absent"}], "overrides[0].id", "there is no space 'rot'"),
        ([{"id": "root", "state": "gone"}], "overrides[0].state", "present or absent"),
        ([{"id": "root", "size": 5}, {"id": "root"}], "overrides[1].id", "occurs twice"),
    ],
)
def test_a_mistake_is_named_with_its_place(overrides: t.Any, place: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        merge(BASE, overrides)
    assert [mistake.place for mistake in caught.value.mistakes] == [place]
    assert says in str(caught.value)


def test_overrides_of_what_is_no_schema() -> None:
    with pytest.raises(InputError, match="schema: is a mapping"):
        merge({}, [])


@pytest.mark.parametrize("name", ["x" * 300, "a/" + "x" * 300, "./" + "x/" * 3000, "a\0b", "./\ud800.yml", "~nobody-of-that-name/x.yml"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        find_profile(name, tmp_path, [tmp_path])
    assert {mistake.place for mistake in caught.value.mistakes} == {"profile"}


@pytest.mark.parametrize("odd", [["x"], {"id": "x"}, 5, None, True])
def test_an_id_of_another_kind_is_left_to_the_reader_of_schemas(odd: t.Any) -> None:
    schema = [{"id": odd, "type": "lv"}, {"id": "g", "type": "vg", "contains": [odd, {"id": odd}, "a"]}, {"id": "a", "type": "lv"}]
    changed, group = merge(schema, [{"id": "a", "state": "absent"}])
    assert changed == schema[0]
    assert group["contains"] == [odd, {"id": odd}]
