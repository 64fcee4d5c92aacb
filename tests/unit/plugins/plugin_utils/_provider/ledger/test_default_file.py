# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that nobody has named is made with a warning, and never in a container."""

from __future__ import annotations

import pwd

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import lasting
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.provider import run_provider

DEFAULTS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("BAREON_DATABASE", "XDG_DATA_HOME", "XDG_STATE_HOME", *lasting.MARK_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(lasting, "MARK_FILES", (str(tmp_path / "mark"),))
    return tmp_path


def register(*, dry_run=False, **arguments):
    return run_provider({**DEFAULTS, "name": "host", **arguments}, dry_run=dry_run)


def forget_home(monkeypatch):
    """Have no HOME, and a user whom no table of users has, as containers start them."""
    monkeypatch.delenv("HOME")

    def of_nobody(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", of_nobody)


def made(home):
    return (home / ".local" / "share" / "bareon" / "providers.sqlite").exists()


def test_the_first_task_warns(home):
    (warning,) = register()["warnings"]
    assert "a new ledger was made" in warning
    assert str(home) in warning
    assert register()["warnings"] == []
    assert made(home)


def test_what_was_named_is_made_without_a_warning(home, monkeypatch):
    assert register(database=f"sqlite:///{home}/named.sqlite")["warnings"] == []
    monkeypatch.setenv("BAREON_DATABASE", f"sqlite:///{home}/other.sqlite")
    assert register()["warnings"] == []
    assert not made(home)


@pytest.mark.parametrize("mark", ["file", "container", "KUBERNETES_SERVICE_HOST"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_in_a_container_it_is_not_made(home, monkeypatch, mark, dry_run):
    if mark == "file":
        (home / "mark").touch()
    else:
        monkeypatch.setenv(mark, "podman")
    with pytest.raises(Unavailable, match="new and empty at every job"):
        register(dry_run=dry_run)
    assert not made(home)
    assert register(database=f"sqlite:///{home}/named.sqlite")["changed"]
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "volume"))
    assert register()["changed"]


def test_where_it_cannot_be_made_what_names_another_is_said(home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("HOME", str(home / "file"))
    with pytest.raises(Unavailable, match=r"file/\.local.* cannot be made .*; name another .* BAREON_DATABASE"):
        register()
    monkeypatch.setenv("HOME", str(home))
    (home / ".local" / "share" / "bareon" / "providers.sqlite").mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"cannot be opened.*; name another .* BAREON_DATABASE"):
        register()
    with pytest.raises(Unavailable) as named:
        register(database=f"sqlite:///{home}/file/named.sqlite")
    assert "BAREON_DATABASE" not in str(named.value)


def test_in_a_container_one_that_is_there_is_used(home):
    register()
    (home / "mark").touch()
    assert not register()["changed"]


def test_a_data_directory_that_is_gone_with_the_job_is_named(home, monkeypatch):
    monkeypatch.setenv("container", "podman")
    monkeypatch.setenv("AWX_ISOLATED_DATA_DIR", str(home / "artifacts" / "7"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    (warning,) = register()["warnings"]
    assert str(home / "data") in warning
    assert "on a volume" in warning
    assert "BAREON_DATABASE" in warning


@pytest.mark.parametrize("data", [None, "data", ""])
def test_without_a_home_a_database_must_be_named(home, monkeypatch, data):
    monkeypatch.chdir(home)
    forget_home(monkeypatch)
    if data is not None:
        monkeypatch.setenv("XDG_DATA_HOME", data)
    with pytest.raises(InputError) as raised:
        register()
    assert [mistake.place for mistake in raised.value.mistakes] == ["database"]
    assert "BAREON_DATABASE" in str(raised.value)
    assert not list(home.iterdir())
    assert register(database=f"sqlite:///{home}/named.sqlite")["changed"]


def test_a_data_directory_that_is_another_wherever_a_job_stands_is_ignored(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    register()
    assert made(home)
