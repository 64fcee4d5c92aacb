# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of actions whose module runs on the host: the answer is checked before Ansible makes variables of its facts."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible.plugins.action.normal import ActionModule as NormalAction

from ...module_utils._data.errors import InputError
from ...module_utils._data.kinds import kind_of
from .action import failure, with_visible_sentences
from .facts import host_of, refuse_facts, refuse_undocumented


def checked(
    result: dict[str, t.Any],
    task_vars: Mapping[str, t.Any] | None,
    facts: tuple[str, ...] = (),
    discovered: str | None = None,
    *,
    host: str = "",
) -> dict[str, t.Any]:
    """Return a module's result, or a failure in its place if its facts are not those that the module returns.

    `discovered`: see refuse_undocumented. `host` is the host that has answered, if that is not the task's. Characters that nobody sees,
    such as the escapes of a terminal, are marked in its messages.
    """
    try:
        refuse_undocumented(host or host_of(task_vars or {}), result, facts, discovered)
    except InputError as error:
        # A play that continues after unreachable hosts needs to distinguish this failure from those.
        return failure(str(error)) | {
            "changed": bool(result.get("changed")),
            "foreign_facts": [mistake.place for mistake in error.mistakes],
        }
    return with_visible_sentences(_of_its_kind(result))


def run_checked(
    run: t.Callable[[], dict[str, t.Any]],
    task_vars: dict[str, t.Any] | None,
    facts: tuple[str, ...] = (),
    *,
    host: str = "",
) -> dict[str, t.Any]:
    """Return what the `run` of an action returns, checked. The host is not asked if it has facts with names of options."""
    variables = {} if task_vars is None else task_vars
    try:
        refuse_facts(variables)
    except InputError as error:
        return failure(str(error))
    before = set(variables.get("ansible_facts") or {})
    try:
        result = run()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # Releases of Ansible read an answer before an action can look at its kinds.
        # A plugin that lacks an option is a KeyError as well, which says nothing itself.
        says = "its answer has values of other kinds than the module gives, or a plugin of Ansible fails"
        return failure(f"{host or host_of(variables)}: {says} ({str(error) or error.__cause__!s})")
    # While it runs a module, Ansible sets nothing else there; what the host says of its Python it takes out of the answer.
    discovered = next((name for name in variables.get("ansible_facts") or {} if name not in before), None)
    return checked(result, variables, facts, discovered, host=host)


def _of_its_kind(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return a result whose message is text, and that has neither facts of a module that has failed nor numbers for the end of a run."""
    unread = {"ansible_stats"} | ({"ansible_facts"} if result.get("failed") or result.get("unreachable") else set())
    left = {key: value for key, value in result.items() if key not in unread}
    return left if isinstance(left.get("msg", ""), str) else {**left, "msg": f"its message is {kind_of(left['msg'])}"}


class HostAction(NormalAction):
    """Runs the module of the same name on the host."""

    FACTS: t.ClassVar[tuple[str, ...]] = ()
    """The facts that the module returns."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; fail if the host has facts with names of options, or answers with facts that are not the module's."""
        return run_checked(lambda: super(HostAction, self).run(tmp, task_vars), task_vars, self.FACTS)
