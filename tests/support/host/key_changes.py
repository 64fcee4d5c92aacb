# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_keys without Ansible: both halves, the controller's and the host's, in one process."""

from __future__ import annotations

import typing as t
from collections.abc import Callable
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.module_utils._keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils._keys.run import apply, foresee
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recovery_keys import Folder, Refused, change_keys, with_recovery

Plain = dict[str, t.Any]

DEFAULTS: Plain = {
    **dict.fromkeys(("luks_key", "luks_key_file", "luks_old_key", "luks_old_key_file", "tpm2_pin", "hand_over")),
    **{"luks_key_files": {}, "take_away": [], "renew": [], "root": "/", "take_last_key": False},
}


def host_half(machine: t.Any, options: Plain, check: bool = False) -> Callable[[Plain], Plain]:
    """Return what runs a part of the module on a machine."""

    def call(hand_over: Plain) -> Plain:
        request = request_of({**DEFAULTS, **options, "hand_over": hand_over})
        report = foresee(request, machine) if check else apply(request, machine, lambda: False)
        result = as_result(report, request, check)
        return result if report.problem is None else {**result, "failed": True, "msg": report.problem}

    return call


def change(machine: t.Any, options: Plain, folder: Path | None = None, *, check: bool = False, shows: bool = False) -> Plain:
    """Return the result of disk_keys, as the action plugin returns it; `folder` is the one for recovery keys."""
    asked = with_recovery(options["containers"])
    kept = None if folder is None else Folder(folder, "db1")
    try:
        if kept is not None and not check:
            kept.check()
        return change_keys(host_half(machine, options, check), asked, kept, shows=shows, check_mode=check)
    except Refused as problem:
        return {"failed": True, "msg": str(problem)}
