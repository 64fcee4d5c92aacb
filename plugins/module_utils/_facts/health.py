# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How well a disk is by its own account, as nvme-cli or smartctl read it, where one of them is installed.

Neither wakes a disk that sleeps, and neither writes.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Mapping

from .host import Host, Outcome

Health = dict[str, t.Any]

_KELVIN = 273
_HOTTEST = 200
"""Degrees: a log of nvme-cli has Kelvin, newer releases may have Celsius."""
_FAILING_BITS = 0b1000
"""Of smartctl's exit code: the disk says that it fails."""
_NOT_ASKED_BITS = 0b0011
"""Of smartctl's exit code: the command was wrong, or the disk did not answer or sleeps."""
_WEAR_ATTRIBUTES = (177, 202, 231, 233, 173)
"""ATA attributes whose normalised value falls from 100 as an SSD wears."""


def read_health(host: Host, dev: str, transport: t.Optional[str]) -> t.Optional[Health]:
    """Return `ok`, `wear` (per cent of what the maker promises, 0 of a new disk), `temperature` (degrees Celsius) and `source`.

    None for each that the disk does not report; None in all where no tool could ask it.
    """
    found = _of_nvme(host.run(["nvme", "smart-log", "--output-format=json", dev])) if transport == "nvme" else None
    return found or _of_smartctl(host.run(["smartctl", "--json", "--nocheck=standby", "--health", "--attributes", "--info", dev]))


def _of_nvme(outcome: t.Optional[Outcome]) -> t.Optional[Health]:
    log = _parsed(outcome) if outcome is not None and outcome.code == 0 else {}
    warning = log.get("critical_warning")
    warning = warning.get("value") if isinstance(warning, Mapping) else warning
    if not _is_whole(warning):
        return None
    kelvin = log.get("temperature")
    celsius = kelvin - _KELVIN if isinstance(kelvin, int) and kelvin > _HOTTEST else kelvin
    wear = log.get("percent_used", log.get("percentage_used"))
    return _health(warning == 0, wear, celsius, "nvme")


def _of_smartctl(outcome: t.Optional[Outcome]) -> t.Optional[Health]:
    report = _parsed(outcome) if outcome is not None else {}
    status = report.get("smart_status")
    passed = status.get("passed") if isinstance(status, Mapping) else None
    if outcome is None or not isinstance(passed, bool) or (outcome.code & _NOT_ASKED_BITS and passed):
        return None
    temperature = report.get("temperature")
    degrees = temperature.get("current") if isinstance(temperature, Mapping) else None
    return _health(passed and not outcome.code & _FAILING_BITS, _wear(report), degrees, "smartctl")


def _wear(report: Mapping[str, t.Any]) -> t.Any:
    """Return how much of an SSD is used up, where NVMe, SAS or ATA report it."""
    log = report.get("nvme_smart_health_information_log")
    if isinstance(log, Mapping):
        return log.get("percentage_used")
    if _is_whole(report.get("scsi_percentage_used_endurance_indicator")):
        return report["scsi_percentage_used_endurance_indicator"]
    attributes = report.get("ata_smart_attributes")
    table = attributes.get("table") if isinstance(attributes, Mapping) else None
    rows = [row for row in table if isinstance(row, Mapping) and _is_whole(row.get("id"))] if isinstance(table, list) else []
    values = {row["id"]: row.get("value") for row in rows}
    left = next((values[at] for at in _WEAR_ATTRIBUTES if _is_whole(values.get(at))), None) if report.get("rotation_rate") == 0 else None
    return None if left is None else max(0, 100 - left)


def _health(ok: bool, wear: t.Any, temperature: t.Any, source: str) -> Health:
    return {
        "ok": ok,
        "wear": wear if _is_whole(wear) else None,
        "temperature": temperature if _is_whole(temperature) else None,
        "source": source,
    }


def _parsed(outcome: Outcome) -> Mapping[str, t.Any]:
    found = re.search(r"\{.*\}", outcome.stdout, re.DOTALL)
    try:
        data = json.loads(found[0]) if found else {}
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _is_whole(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
