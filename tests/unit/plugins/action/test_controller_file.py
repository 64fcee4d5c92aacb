# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in a file before it is replaced, which --diff shows; and what others have planted at its name."""

from __future__ import annotations

import contextlib
import os
import threading
import typing as t
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.connection import local
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.action.controller_file import ActionModule
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_files import difference, plan_files, write

PRECIOUS = "of the operator"


def write_page(path: Path, *, check: bool = False) -> str:
    """Run the action in diff mode and return what the file had before, as the diff shows it."""
    task, loader, context = Task(), DataLoader(), PlayContext()
    task.action, task.check_mode, task.diff = "bareon.allocator.controller_file", check, True
    task.args = {"dest": str(path), "content": "new"}
    action = ActionModule(task, local.Connection(context), context, loader, Templar(loader=loader, variables={}), None)
    result: dict[str, t.Any] = action.run(task_vars={})
    assert result["changed"], result
    return str(result["diff"]["before"])


def write_plan(path: Path) -> str:
    files = plan_files(path.parent, {path.name.removesuffix(".json"): {"disks": []}})
    write(files)
    return str(difference(files))


@pytest.fixture(params=["link", "dangling link", "pipe"])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "page.json"
    (tmp_path / "mine").write_text(PRECIOUS, encoding="utf-8")
    if request.param == "pipe":
        os.mkfifo(path)

        def feed() -> None:
            with contextlib.suppress(OSError), path.open("w", encoding="utf-8") as pipe:
                pipe.write(PRECIOUS)

        threading.Thread(target=feed, daemon=True).start()
    else:
        path.symlink_to(tmp_path / ("mine" if request.param == "link" else "none"))
    return path


@pytest.mark.parametrize("write_it", [write_page, write_plan])
def test_what_others_have_planted_is_not_shown(planted: Path, write_it: Callable[[Path], str]) -> None:
    assert PRECIOUS not in write_it(planted)
    assert planted.is_file()
    assert not planted.is_symlink()
    assert planted.with_name("mine").read_text(encoding="utf-8") == PRECIOUS
    assert not planted.with_name("none").exists()


@pytest.mark.parametrize("check", [False, True])
def test_the_text_before_is_shown(tmp_path: Path, check: bool) -> None:
    path = tmp_path / "page"
    assert write_page(path, check=check) == ""
    path.write_bytes(b"old \xff")
    assert write_page(path, check=check) == "old \N{REPLACEMENT CHARACTER}"
    assert path.read_bytes() == (b"old \xff" if check else b"new")
