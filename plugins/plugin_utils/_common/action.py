# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of all planning actions: the one place of plugin_utils that knows Ansible.

A subclass names its arguments and says in `plan` what is computed; the base turns arguments into plain data,
collected mistakes and missing solutions into one message, and results into what Ansible can store.
"""

from __future__ import annotations

import traceback
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ansible import constants, context
from ansible.errors import AnsibleAction, AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils import color

from ...module_utils._data.errors import InputError, Mistake, NoSolution, Unavailable, describe_unwritable, suggest
from ...module_utils._data.words import visible_lines
from .facts import refuse_facts
from .libraries import MissingLibraries, describe_missing, part_of, refuse_missing
from .options import refuse_unreadable
from .plain import plain, plain_input
from .table import folded

_QUIET_SECONDS = 2.0
"""What takes less shows no progress."""
_RENEWED_SECONDS = 10.0
"""How often a line comes again that cannot be renewed in its place, as in a file."""
_WIDTH = 79
"""Columns of a line that is renewed in its place; blanks overwrite what is left of a longer one."""


class Progress(t.Protocol):
    """The progress that common.parallel reports; as text it is a line to show."""

    @property
    def seconds(self) -> float:
        """Return for how long they have run."""


def failure(message: str) -> dict[str, t.Any]:
    """Return the result of a task that fails with this message."""
    return {"failed": True, "msg": message}


def with_visible_sentences(result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return a result in which sentences for people have no characters that nobody sees, and a summary fits a terminal; data stay."""
    sentences: dict[str, t.Any] = {}
    if isinstance(result.get("msg"), str):
        sentences["msg"] = visible_lines(result["msg"])
    if isinstance(result.get("summary"), str):
        sentences["summary"] = folded(visible_lines(result["summary"]))
    if isinstance(result.get("warnings"), list):
        sentences["warnings"] = [visible_lines(one) if isinstance(one, str) else one for one in result["warnings"]]
    return {**result, **sentences}


def folder_of_run() -> Path:
    """Return the folder of this run of Ansible, which is its user's alone and is removed at its end."""
    return Path(t.cast("t.Any", constants).DEFAULT_LOCAL_TMP)


def rehearsal_folder(*, check_mode: bool) -> Path | None:
    """Return a folder that lasts as long as this run of Ansible, for what its tasks only rehearse; None where they do not all rehearse.

    A single task in check mode among others that make their changes is to see these changes.
    """
    return folder_of_run() if check_mode and context.CLIARGS.get("check") else None


class PlanningAction(ActionBase):
    """Arguments in, one call, result out, on the controller and without a connection."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False
    _supports_diff = True

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {}
    """The argument spec, as AnsibleModule takes it."""

    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {}
    """mutually_exclusive, required_one_of, required_if ... of the argument spec."""

    NEEDS_LIBRARIES: t.ClassVar[bool] = True
    """Whether the action can do nothing while a library is missing, be it another's."""

    _shown = 0.0
    """The seconds of the progress that was shown last, where a line is renewed."""

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return the task's result as plain data; raise InputError or NoSolution."""
        raise TypeError(f"{type(self).__name__} does not say what it plans")

    @property
    def rehearsal(self) -> Path | None:
        """Where this task finds what those before it have rehearsed, and leaves what it rehearses; None if nothing is rehearsed."""
        return rehearsal_folder(check_mode=self._task.check_mode)

    def show_progress(self, progress: Progress) -> None:
        """Show how far a long solve is, on standard error; it is what `progress` of common.parallel calls."""
        if progress.seconds >= _QUIET_SECONDS:
            self._end_line()
            self._display.display(f"{self._task.action.rpartition('.')[2]}: {progress}", stderr=True)

    def renew_progress(self, progress: Progress) -> None:
        """Show how far one long search is, in a line that is renewed on a terminal and comes again once in a while elsewhere."""
        if progress.seconds < _QUIET_SECONDS:
            return
        line = f"{self._task.action.rpartition('.')[2]}: {progress}"
        if color.ANSIBLE_COLOR:
            self._display.display("\r" + line.ljust(_WIDTH), screen_only=True, stderr=True, newline=False)
        elif progress.seconds < self._shown + _RENEWED_SECONDS:
            return
        else:
            self._display.display(line, stderr=True)
        self._shown = progress.seconds

    def _end_line(self) -> None:
        """Go on below a line that was renewed."""
        if self._shown and color.ANSIBLE_COLOR:
            self._display.display("", screen_only=True, stderr=True)
        self._shown = 0.0

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Validate the arguments, plan, and return the result; a problem without a solution fails with `msg` and `conflict`."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        result.setdefault("changed", False)
        try:
            # What fails is returned, too: an exception would go past the `failed_when` and `until` of the task.
            return result | with_visible_sentences(plain(self._planned(task_vars or {})))
        except (AnsibleAction, AnsibleConnectionFailure):
            raise
        except AnsibleError as error:
            return result | with_visible_sentences(failure(str(error)))
        except Exception as error:
            # Nobody foresaw it; that is our mistake, whatever the input is.
            described = f"{type(error).__name__}: {error}".rstrip(": ")
            says = failure(f"a mistake in bareon.allocator ({described}); please report it")
            return result | with_visible_sentences(says) | {"exception": traceback.format_exc()}
        finally:
            self._end_line()

    def _planned(self, task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        try:
            if self.NEEDS_LIBRARIES:
                refuse_missing(part_of(self._task.action))
            refuse_facts(task_vars)
            return self.plan(self._validated_arguments(), task_vars)
        except (InputError, MissingLibraries, Unavailable) as error:
            return failure(str(error))
        except UnicodeEncodeError as error:
            return failure(describe_unwritable(error))
        except RecursionError:
            return failure("the options of the task have lists or mappings in each other more deeply than can be read")
        except ImportError as error:
            return failure(describe_missing(error, part_of(self._task.action)))
        except NoSolution as error:
            return failure(str(error)) | {"conflict": error.conflict}
        except AnsibleActionFail as error:
            return failure(error.message)

    def _validated_arguments(self) -> dict[str, t.Any]:
        # Ansible would check which options exclude each other first, and say of `profle` that `profile` is missing.
        unknown = [name for name in self._task.args if name not in self.ARGUMENTS]
        if unknown:
            raise InputError([Mistake(name, f"is not an option of {self._task.action}{self._meant(name)}") for name in unknown])
        refuse_unreadable(self._task.args, self.ARGUMENTS)
        _validation, arguments = self.validate_argument_spec(argument_spec=dict(self.ARGUMENTS), **self.CONSTRAINTS)
        return t.cast("dict[str, t.Any]", plain_input(arguments))

    def _meant(self, name: str) -> str:
        return suggest(name, self.ARGUMENTS) or f"; its options are {', '.join(self.ARGUMENTS)}"
