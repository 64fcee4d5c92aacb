# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders with a file for each host: which file is whose, what is in it, and what cannot be read."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.files import Folder, facts_in

HARDWARE = {"ram": 1024, "disks": [{"id": "sda", "size": 100}]}
PAYLOAD = {"__payload__": json.dumps({"bareon_hardware": HARDWARE, "ansible_date_time": {}})}


def test_a_host_has_a_file_of_its_name(tmp_path: pathlib.Path) -> None:
    for name in ("web1.json", "web2.example.com", "s1_db1", ".hidden.json"):
        (tmp_path / name).write_text(json.dumps(name), encoding="utf-8")
    (tmp_path / "folder").mkdir()
    folder = Folder("hardware", tmp_path)
    assert {"web1", "web2.example.com", "db1"} <= set(folder.hosts)
    assert not {"hidden", ".hidden", "folder"} & set(folder.hosts)
    read = {host: folder.read(host) for host in ("web1", "web2.example.com", "db1", "db2")}
    assert read == {"web1": "web1.json", "web2.example.com": "web2.example.com", "db1": "s1_db1", "db2": None}


def test_what_a_cache_writes_now_goes_before_what_it_wrote_once(tmp_path: pathlib.Path) -> None:
    for name in ("web1", "s1_web1"):
        (tmp_path / name).write_text(json.dumps(name), encoding="utf-8")
    assert Folder("hardware", tmp_path).read("web1") == "s1_web1"


@pytest.mark.parametrize(
    "kept", [HARDWARE, {"bareon_hardware": HARDWARE}, {"ansible_facts": {"bareon_hardware": HARDWARE}, "changed": False}, PAYLOAD]
)
def test_facts_are_found_in_all_that_keeps_them(kept: dict[str, t.Any]) -> None:
    assert facts_in(kept) == HARDWARE


@pytest.mark.parametrize("kept", [None, {}, {"ansible_facts": {}}, {"__payload__": "{}"}])
def test_nothing_is_known_where_facts_are_of_something_else(kept: t.Any) -> None:
    assert facts_in(kept) is None


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff"])
def test_what_is_no_json_is_named(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "web1.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"plans.web1: .*web1.json cannot be read as JSON"):
        Folder("plans", tmp_path).read("web1")


def test_a_folder_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InputError, match=r"plans: .*/none cannot be read: No such file or directory"):
        Folder("plans", tmp_path / "none")


def test_what_is_no_path_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InputError, match="plans: is no path: .*null"):
        Folder("plans", tmp_path / "a\0b")
