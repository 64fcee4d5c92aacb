# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done before Ansible forks, and that it never keeps a task from its own message."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema import yaql as expressions
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.warm_up import warm_up


def test_the_general_profile_is_read_and_its_expressions_parsed_once() -> None:
    warm_up(PROFILES)
    schema = load_profile(PROFILES / "general.yml")
    assert load_profile(PROFILES / "general.yml") is schema
    parsed = expressions._parsed.cache_info().misses
    warm_up(PROFILES)
    assert expressions._parsed.cache_info().misses == parsed


def test_a_profile_that_cannot_be_read_or_planned_is_left_to_its_task(tmp_path: pathlib.Path) -> None:
    (tmp_path / "broken.yml").write_text("schema: [", encoding="utf-8")
    (tmp_path / "general.yml").write_text("schema: [{id: a, type: lv, min_size: 9 TiB}]", encoding="utf-8")
    warm_up(tmp_path)
    with pytest.raises(InputError, match=r"broken\.yml: cannot be read"):
        load_profile(tmp_path / "broken.yml")


def test_a_folder_that_is_not_there_has_no_profiles(tmp_path: pathlib.Path) -> None:
    warm_up(tmp_path / "absent")


def test_a_profile_that_has_changed_is_read_anew(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("[{id: a, type: lv}]", encoding="utf-8")
    assert load_profile(path) == [{"id": "a", "type": "lv"}]
    path.write_text("[{id: b, type: lv}]", encoding="utf-8")
    os.utime(path, ns=(0, 0))
    assert load_profile(path) == [{"id": "b", "type": "lv"}]


def test_a_first_plan_loads_nothing_that_it_does_not_need() -> None:
    """What is loaded before Ansible forks is paid by every run; what only some machines come to is loaded where it is needed."""
    prefix = "ansible_collections.bareon.allocator.plugins."
    code = f"import sys, {prefix}action.disk_plan; print(*sys.modules)"
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    loaded = subprocess.run([sys.executable, "-c", code], env=os.environ | paths, check=True, capture_output=True, text=True).stdout.split()
    rooms = [name.removeprefix(f"{prefix}plugin_utils.") for name in loaded if name.startswith(prefix)]
    assert "_disk.warm_up" in rooms
    needless = ("conflict.explain", "ordered", "installer", "recorded", "drift", "render.svg", "render.html")
    assert [name for name in rooms if name.startswith(tuple(f"_disk.{part}" for part in needless))] == []
    assert [name for name in rooms if name.startswith(("_group", "_provider", "_bridge", "_common.parallel", "_common.dask"))] == []
    assert [name for name in ("networkx", "sqlalchemy", "scipy", "proxmoxer", "requests", "distributed") if name in loaded] == []
