# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan a fleet and write its page: the variables of hosts to one call of plugin_utils._disk, and a page to a file."""

from __future__ import annotations

import gc
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ansible.release import __version__

from ..module_utils._data.errors import InputError, Mistake
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.files import PUBLIC_FILE, replace_file, text_before
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._common.plain import is_literal, plain_input
from ..plugin_utils._common.release import collection_version, date_of_now, with_kept_date
from ..plugin_utils._common.variables import refuse_unknown
from ..plugin_utils._disk.fleet_report import Member, Source, described_sources, planned_fleet, report_counts
from ..plugin_utils._disk.known_hardware import FACT, WRITTEN, known_hardware
from ..plugin_utils._disk.render.html import fleet_page
from ..plugin_utils._disk.schema.eligible import EligibleKind
from ..plugin_utils._disk.schema.profiles import PROFILES, find_profile, read_profile
from ..plugin_utils._disk.warm_up import warm_up

PROFILE = "bareon_profile"
_UNREAD = "its hardware could not be read"
_NOT_ASKED = "it was not asked in this run, and facts of an earlier run are not planned"

warm_up(PROFILES)


class ActionModule(PlanningAction):
    """disk_report: from the variables of hosts to one page of their plans."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "hosts": {"type": "list", "elements": "str", "required": True},
        "dest": {"type": "path", "required": True},
        "title": {"type": "str", "default": "Disk layouts"},
        "overrides": {"type": "raw"},
        "eligible": {"type": "list", "elements": "str", "choices": list(EligibleKind)},
        "registered": {"type": "str"},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the hosts and write the page unless it is there already."""
        # The inventory is no garbage, and to look for some in it again and again takes long.
        gc.freeze()
        try:
            members = [self._member(host, arguments, task_vars["hostvars"]) for host in arguments["hosts"]]
        finally:
            gc.unfreeze()
        profiles = self._profiles(members)
        fleet = planned_fleet(members, profiles, arguments["overrides"], arguments["eligible"])
        path = Path.cwd() / arguments["dest"]
        origin = {
            "profiles": ", ".join(sorted(profiles)),
            "planned with": f"bareon.allocator {collection_version()}, ansible-core {__version__}",
            "date": date_of_now(),
            "hardware": described_sources(members),
        }
        changed, shown = self._written(path, fleet_page(fleet, arguments["title"], origin))
        warnings = loss_warnings(path.parent, "dest, in the playbook bareon_report")
        return {"dest": str(path), "changed": changed, "warnings": warnings, **report_counts(members, fleet), **shown}

    def _member(self, host: str, arguments: Mapping[str, t.Any], hostvars: t.Any) -> Member:
        """Return what is known of a host, or why nothing is."""
        if host not in hostvars:
            raise InputError([Mistake("hosts", f"{host} is not in the inventory")])
        variables = hostvars.raw_get(host)
        answer = variables.get(arguments["registered"] or "")
        try:
            hardware = known_hardware(variables, self._templar.template)
            refuse_unknown({"hostvars": hostvars, "inventory_hostname": host}, variables)
            profile = variables.get(PROFILE, "general")
            profile = str(plain_input(profile if is_literal(profile) else self._templar.template(profile), PROFILE))
        except InputError as error:
            return Member(host, failure=str(error))
        source = Source.WRITTEN if variables.get(WRITTEN) is not None else _source_of_facts(answer, arguments["registered"])
        if hardware is None or source is None:
            return _without_hardware(host, answer, has_facts=hardware is not None)
        return Member(host, hardware=plain_input(hardware, f"{host}.{FACT}"), profile=profile, source=source)

    def _profiles(self, members: list[Member]) -> dict[str, Mapping[str, t.Any]]:
        """Return the profiles of the hosts by name. Raises InputError for one that there is not."""
        folders = (Path(self._loader.get_basedir()), Path.cwd())
        names = dict.fromkeys(member.profile for member in members if member.hardware is not None)
        return {name: read_profile(find_profile(name, PROFILES, folders)) for name in names}

    def _written(self, path: Path, after: str) -> tuple[bool, dict[str, t.Any]]:
        """Write the page, but not in check mode, and return whether it changes, and the difference where it is asked for.

        A page keeps its date as long as nothing else on it changes.
        """
        try:
            before = text_before(path)
            after = with_kept_date(after, before)
            if before != after and not self._task.check_mode:
                replace_file(path, after, PUBLIC_FILE)
        except OSError as error:
            raise InputError([Mistake("dest", f"{path} cannot be written: {error.strerror}")]) from error
        diff = {"before": before or "", "after": after, "before_header": str(path), "after_header": str(path)}
        return before != after, {"diff": diff} if self._task.diff and before != after else {}


def _source_of_facts(answer: t.Any, registered: str | None) -> Source | None:
    """Return from where the facts of a host are, by its answer to the task that asked for them; None: only a cache has any."""
    if registered is None or (isinstance(answer, Mapping) and answer.get("skipped") is True):
        return Source.BEFORE
    if not isinstance(answer, Mapping) or answer.get("unreachable") is True or answer.get("failed") is True:
        return None
    return Source.NOW


def _without_hardware(host: str, answer: t.Any, *, has_facts: bool) -> Member:
    """Return a host whose hardware is not known, with the reason; facts of an earlier run may be from before its disks were changed."""
    answer = answer if isinstance(answer, Mapping) else {}
    said = str(answer.get("msg") or (_NOT_ASKED if has_facts and not answer else _UNREAD))
    if answer.get("failed") is True:
        return Member(host, failure=said)
    return Member(host, unread=f"unreachable: {said}" if answer.get("unreachable") is True else said)
