# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of a task as they are without the facts of its host, and those that look like our options and are none."""

from __future__ import annotations

import contextlib
import functools
import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ansible import context

from ...module_utils._data.errors import Mistakes, suggest
from .facts import PREFIXES

_COLLECTION = "bareon.allocator."
_ROOT = Path(__file__).resolve().parents[3]
_NAMES = re.compile(rf"\b(?:{'|'.join(PREFIXES)})\w+")


class _NoFacts:
    """Stands in for the cache of facts and knows no host."""

    def get(self, host: str) -> t.NoReturn:
        """Raise KeyError, as the cache does for a host without facts."""
        raise KeyError(host)


def without_facts(task: t.Any, task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the variables of a task, templates in them not resolved, as Ansible merges them for a host without facts.

    Ansible has no interface for this, so its merge runs again with an empty cache of facts. Facts are in `ansible_facts`, and under their
    names with `ansible_` where no other variable has that name: operators expect that of `ansible_memtotal_mb`.
    """
    manager = task_vars["hostvars"]._variable_manager
    host = manager._inventory.get_host(task_vars["inventory_hostname"])
    with _no_facts(manager):
        variables: dict[str, t.Any] = manager.get_vars(play=task.get_play(), host=host, task=task)
    facts = {name: value for name, value in task_vars.items() if name.startswith("ansible_")}
    return {**facts, **variables, "ansible_facts": task_vars["ansible_facts"]}


@contextlib.contextmanager
def _no_facts(manager: t.Any) -> Iterator[None]:
    cache = manager._fact_cache
    manager._fact_cache = _NoFacts()
    try:
        yield
    finally:
        manager._fact_cache = cache


def refuse_unknown(task_vars: Mapping[str, t.Any], variables: Mapping[str, t.Any]) -> None:
    """Raise InputError for variables that begin as options of the collection do, and that none of its playbooks and roles knows.

    A typing mistake in the name of an option would be a plan by its default. What tasks have registered is left alone.
    """
    registered = task_vars["hostvars"]._variable_manager._nonpersistent_fact_cache.get(task_vars["inventory_hostname"], {})
    ours = [name for name in variables if isinstance(name, str) and name.startswith(PREFIXES) and name not in registered]
    unknown = sorted(set(ours) - known_names()) if ours else []
    mistakes = Mistakes()
    for name in unknown:
        mistakes.add(name, f"is no variable of the collection{suggest(name, known_names())}; begin variables of your own with another word")
    mistakes.check()


def of_other_playbooks(task_vars: Mapping[str, t.Any]) -> list[str]:
    """Return warnings of variables of the command line that a run of our playbooks alone does not read, though others of ours do.

    One file of variables may be for several playbooks, as an inventory is, so this is no mistake.
    """
    started = playbooks_of_run(context.CLIARGS.get("args") or ())
    given = [name for name in task_vars["hostvars"]._variable_manager.extra_vars if str(name).startswith(PREFIXES)] if started else []
    read = frozenset[str]().union(*map(_names_in, started))
    run = " and ".join(file.stem for file in started)
    return [f"{name} is not read by {run}, only by {_readers(name)}" for name in sorted({*given} - read)]


def _readers(name: str) -> str:
    return ", ".join(file.stem for file in sorted(_ROOT.glob("playbooks/*.yml")) if name in _names_in(file)) or "a role"


def playbooks_of_run(named: Sequence[str]) -> tuple[Path, ...]:
    """Return the playbooks of the collection that a run was started with, as the command names them; none where another is among them."""
    files = [
        _ROOT / "playbooks" / f"{name.removeprefix(_COLLECTION)}.yml" if name.startswith(_COLLECTION) else Path(name).resolve()
        for name in named
    ]
    own = all(file.parent == _ROOT / "playbooks" and file.is_file() for file in files)
    return tuple(files) if own else ()


@functools.cache
def known_names() -> frozenset[str]:
    """Return all words of our playbooks and roles that begin as options do."""
    return frozenset[str]().union(*map(_names_in, _ROOT.glob("playbooks/*.yml")), *map(_names_of_role, _ROOT.glob("roles/*")))


@functools.cache
def _names_in(playbook: Path) -> frozenset[str]:
    """Return the words of a playbook that begin as options do, and those of the roles that it runs."""
    text = playbook.read_text(encoding="utf-8")
    roles = [role for role in _ROOT.glob("roles/*") if re.search(rf"(?:name|role): {_COLLECTION}{role.name}$", text, re.MULTILINE)]
    return frozenset(_NAMES.findall(text)).union(*map(_names_of_role, roles))


def _names_of_role(role: Path) -> frozenset[str]:
    return frozenset(name for file in role.glob("*/**/*.yml") for name in _NAMES.findall(file.read_text(encoding="utf-8")))
