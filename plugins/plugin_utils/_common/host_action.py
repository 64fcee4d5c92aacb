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
    result: dict[str, t.Any], task_vars: Mapping[str, t.Any] | None, facts: tuple[str, ...] = (), discovered: str | None = None
) -> dict[str, t.Any]:
    """Return a module's result, or a failure in its place if its facts are not those that the module returns.

    `discovered`: see refuse_undocumented. Characters that nobody sees, such as the escapes of a terminal, are marked in its messages.
    """
    try:
        refuse_undocumented(host_of(task_vars or {}), result, facts, discovered)
    except InputError as error:
        # A play that continues after unreachable hosts needs to distinguish this failure from those.
        return failure(str(error)) | {
            "changed": bool(result.get("changed")),
            "foreign_facts": [mistake.place for mistake in error.mistakes],
        }
    return with_visible_sentences(_of_its_kind(result))


def _of_its_kind(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return a result whose message is text, and that has no facts where the module has failed: others read both of them."""
    left = {
        key: value for key, value in result.items() if key != "ansible_facts" or not (result.get("failed") or result.get("unreachable"))
    }
    return left if isinstance(left.get("msg", ""), str) else {**left, "msg": f"its message is {kind_of(left['msg'])}"}


class HostAction(NormalAction):
    """Runs the module of the same name on the host."""

    FACTS: t.ClassVar[tuple[str, ...]] = ()
    """The facts that the module returns."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; fail if the host has facts with names of options, or answers with facts that are not the module's."""
        try:
            refuse_facts(task_vars or {})
        except InputError as error:
            return failure(str(error))
        try:
            result = super().run(tmp, task_vars)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # Releases of Ansible read an answer before an action can look at its kinds.
            return failure(f"{host_of(task_vars or {})}: its answer has values of other kinds than the module gives ({error})")
        return checked(result, task_vars, self.FACTS, self._discovered_interpreter_key)
