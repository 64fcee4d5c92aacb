# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print a playbook's results as one JSON document at its end, for tests that look at tasks by their name."""

from __future__ import annotations

import json
import typing as t

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: results
type: stdout
short_description: Results of all tasks as JSON, for tests
description: The document has C(tasks), a list of C(name) and C(hosts) (result by host) in the order of the run, and C(stats) by host.
extends_documentation_fragment: [ansible.builtin.default_callback]
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "results"

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[dict[str, t.Any]] = []

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:
        self._tasks.append({"name": task.get_name(), "hosts": {}})

    v2_playbook_on_handler_task_start = v2_playbook_on_task_start

    def _keep(self, result: t.Any, **more: bool) -> None:
        self._tasks[-1]["hosts"][result.host.get_name()] = {**result.result, "action": result.task.action, **more}

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._keep(result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        self._keep(result, failed=True)

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        self._keep(result, skipped=True)

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._keep(result, unreachable=True)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        by_host = {host: stats.summarize(host) for host in sorted(stats.processed)}
        self._display.display(json.dumps({"tasks": self._tasks, "stats": by_host}, default=str))
