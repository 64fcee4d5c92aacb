# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports written after those of nvme-cli 2.8 and smartctl 7.4: no virtual disk at hand has a log of its health."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.health import read_health
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

NVME = "nvme smart-log --output-format=json {}"
SMARTCTL = "smartctl --json --nocheck=standby --health --attributes --info {}"
ATA = {"smart_status": {"passed": True}, "temperature": {"current": 33}, "rotation_rate": 0}


def health(transport="sata", *, nvme=None, smartctl=None, code=0):
    host = RecordedHost({})
    host = host if nvme is None else host.with_command(NVME.format("/dev/x"), nvme if isinstance(nvme, str) else json.dumps(nvme))
    host = host if smartctl is None else host.with_command(SMARTCTL.format("/dev/x"), json.dumps(smartctl), code)
    return read_health(host, "/dev/x", transport)


def test_an_nvme_reports_kelvin_and_what_is_used_up():
    log = {"critical_warning": 0, "temperature": 310, "avail_spare": 100, "percent_used": 3}

    assert health("nvme", nvme=log) == {"ok": True, "wear": 3, "temperature": 37, "source": "nvme"}


@pytest.mark.parametrize("warning", [4, {"value": 4, "reliability_degraded": 1}])
def test_any_critical_warning_of_an_nvme_is_a_failure(warning):
    assert health("nvme", nvme={"critical_warning": warning, "temperature": 37, "percentage_used": 101}) == {
        "ok": False,
        "wear": 101,
        "temperature": 37,
        "source": "nvme",
    }


def test_smartctl_stands_in_where_there_is_no_nvme_cli():
    report = {"smart_status": {"passed": True}, "nvme_smart_health_information_log": {"percentage_used": 9}, "temperature": {"current": 40}}

    assert health("nvme", smartctl=report) == {"ok": True, "wear": 9, "temperature": 40, "source": "smartctl"}
    assert health("nvme", nvme="no json", smartctl=report)["source"] == "smartctl"


@pytest.mark.parametrize(
    ("more", "wear"),
    [
        ({"ata_smart_attributes": {"table": [{"id": 9, "value": 99}, {"id": 177, "value": 95}]}}, 5),
        ({"ata_smart_attributes": {"table": [{"id": 177, "value": 95}]}, "rotation_rate": 7200}, None),
        ({"scsi_percentage_used_endurance_indicator": 12}, 12),
        ({"ata_smart_attributes": {"table": "none"}}, None),
        ({}, None),
    ],
)
def test_wear_is_what_an_ssd_tells_of_it(more, wear):
    assert health(smartctl={**ATA, **more}) == {"ok": True, "wear": wear, "temperature": 33, "source": "smartctl"}


@pytest.mark.parametrize(("passed", "code", "ok"), [(True, 0, True), (True, 4, True), (True, 8, False), (False, 8, False)])
def test_a_disk_fails_that_says_so(passed, code, ok):
    assert health(smartctl={**ATA, "smart_status": {"passed": passed}}, code=code)["ok"] is ok


@pytest.mark.parametrize(("report", "code"), [(ATA, 2), (ATA, 1), ({}, 0), ({"smart_status": 1}, 0), ([], 0)])
def test_a_disk_that_did_not_answer_has_no_health(report, code):
    assert health(smartctl=report, code=code) is None


def test_without_a_tool_there_is_no_health():
    assert health("nvme") is None
    assert health() is None
