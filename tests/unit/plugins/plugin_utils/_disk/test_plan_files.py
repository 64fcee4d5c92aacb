# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans as files: what changes, what stays, and what no file can be made of."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import files as common_files
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_files import (
    difference,
    files_summary,
    plan_files,
    to_plain,
    write,
)

PLAN = {
    "fingerprint": "00",
    "disks": [{"disk_id": "sda", "size": 100, "spaces": [{"space_id": "a"}]}],
    "schema": {"vgs": []},
    "warnings": [],
}


def test_a_file_holds_the_plan_and_the_digest_is_that_of_the_file(tmp_path: pathlib.Path) -> None:
    files = plan_files(tmp_path / "new" / "folder", {"web1": PLAN})
    write(files)
    path = tmp_path / "new" / "folder" / "web1.json"
    assert json.loads(path.read_text()) == PLAN
    told = to_plain(path.parent, files, ["a warning"])
    assert told == {
        "digests": {"web1": hashlib.sha256(path.read_bytes()).hexdigest()},
        "written": ["web1"],
        "changed": True,
        "warnings": ["a warning"],
    }
    assert [entry.name for entry in path.parent.iterdir()] == ["web1.json"]
    assert files_summary(path.parent, files) == f"1 plan in {path.parent}: 1 new, 0 changed, 0 as they were"


def test_an_entry_has_a_line_of_its_own(tmp_path: pathlib.Path) -> None:
    [file] = plan_files(tmp_path, {"web1": PLAN})
    assert '      "spaces": [{"space_id": "a"}]\n' in file.after
    assert file.after.endswith('  "warnings": []\n}\n')


def test_only_what_changes_is_written(tmp_path: pathlib.Path) -> None:
    write(plan_files(tmp_path, {"web1": PLAN, "web2": PLAN}))
    before = (tmp_path / "web1.json").stat().st_ino
    files = plan_files(tmp_path, {"web1": PLAN, "web2": PLAN | {"warnings": ["small"]}, "web3": PLAN})
    assert to_plain(tmp_path, files, [])["written"] == ["web2", "web3"]
    assert files_summary(tmp_path, files) == f"3 plans in {tmp_path}: 1 new, 1 changed, 1 as they were"
    assert [(diff["before"] == "", '"small"' in diff["after"]) for diff in difference(files)] == [(False, True), (True, False)]
    write(files)
    assert (tmp_path / "web1.json").stat().st_ino == before
    assert json.loads((tmp_path / "web2.json").read_text())["warnings"] == ["small"]


def test_nothing_is_half_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(plan_files(tmp_path, {"web1": PLAN}))
    files = plan_files(tmp_path, {"web1": PLAN | {"warnings": ["other"]}})

    def cut_off(_handle: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(common_files.os, "fsync", cut_off)
    with pytest.raises(InputError, match="plans_to: cannot be used: No space left on device"):
        write(files)
    assert json.loads((tmp_path / "web1.json").read_text()) == PLAN
    assert [entry.name for entry in tmp_path.iterdir()] == ["web1.json"]


@pytest.mark.parametrize("host", ["../web1", "a/b", ".hidden", "..", "a\0b"])
def test_a_host_whose_name_is_no_file_is_refused(tmp_path: pathlib.Path, host: str) -> None:
    with pytest.raises(InputError, match="plans_to: the host .* cannot have a file of its name"):
        plan_files(tmp_path, {"good": PLAN, host: PLAN})


def test_a_folder_that_is_none_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"plans_to: cannot be used: .*Not a directory"):
        plan_files(tmp_path / "file", {"web1": PLAN})


def test_what_is_no_path_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InputError, match="plans_to: cannot be used: .*null"):
        plan_files(tmp_path / "a\0b", {"web1": PLAN})
