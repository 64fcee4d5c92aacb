# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_report: each host by its own profile on one page, and what is wrong with one host stays with that host."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.connection import local
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.action.disk_report import ActionModule

HARDWARE = {"ram": 4096, "firmware": "uefi", "disks": [{"id": "sda", "type": "ssd", "size": 65536}]}
SMALL = {"ram": 4096, "disks": [{"id": "sda", "type": "ssd", "size": 100}]}


class HostVars(dict):
    """Variables by host, as Ansible hands them to actions: this is a stand-in."""

    _variable_manager = SimpleNamespace(_nonpersistent_fact_cache={})

    def raw_get(self, host: str) -> t.Any:
        return {"inventory_hostname": host, **self[host]}


def report(
    folder: Path, variables: dict[str, dict[str, t.Any]], /, *, check: bool = False, **options: t.Any
) -> tuple[dict[str, t.Any], str]:
    """Return the result for some hosts, and the page."""
    task, loader = Task(), DataLoader()
    task.action, task.check_mode = "bareon.allocator.disk_report", check
    page = folder / "page.html"
    task.args = {"hosts": list(variables), "dest": str(page), **options}
    loader.set_basedir(str(folder))
    context = PlayContext()
    action = ActionModule(task, local.Connection(context), context, loader, Templar(loader=loader, variables={}), None)
    result = action.run(task_vars={"inventory_hostname": "a", "hostvars": HostVars(variables)})
    return result, page.read_text(encoding="utf-8") if page.exists() else ""


def written(hardware: t.Any = None, **variables: t.Any) -> dict[str, t.Any]:
    return {"bareon_known_hardware": HARDWARE if hardware is None else hardware, **variables}


def counts(result: dict[str, t.Any]) -> tuple[int, int, int]:
    return result["hosts"], result["without_plan"], result["unread"]


def test_each_host_is_planned_by_the_profile_of_its_own(tmp_path: Path) -> None:
    for name, mount in (("one", "/srv/one"), ("two", "/srv/two")):
        schema = [{"id": "all", "type": "partition", "mount": mount}]
        (tmp_path / f"{name}.yml").write_text(json.dumps({"schema": schema}), encoding="utf-8")
    hosts = {"a": written(bareon_profile="one.yml"), "b": written(bareon_profile="two.yml"), "c": written(bareon_profile="one.yml")}
    result, page = report(tmp_path, hosts, title="Rack 12")
    assert counts(result) == (3, 0, 0)
    assert result["changed"] is True
    assert "plans" not in result
    assert "<h1>Rack 12</h1>" in page
    assert page.count('<details class="shape"') == 2
    assert "/srv/one" in page
    assert "/srv/two" in page
    again, _page = report(tmp_path, hosts, title="Rack 12")
    assert again["changed"] is False


def test_the_page_can_be_filed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = {"ansible_facts": {"bareon_hardware": HARDWARE}, "bareon_read": {"changed": False}}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769860800")
    _result, page = report(tmp_path, {"a": written(), "b": gathered}, registered="bareon_read")
    said = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))
    assert said["date"] == "2026-01-31"
    assert said["profiles"] == "general"
    assert re.fullmatch(r"bareon\.allocator [0-9]+\.[0-9]+\.[0-9]+\S*, ansible-core [0-9]+\.[0-9]+\.\S+", said["planned with"])
    assert said["hardware"] == "1 host from bareon_known_hardware, 1 host from disk_facts of this run"
    # The next day the same page stays, with its date; another page is of its day.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769947200")
    again, after = report(tmp_path, {"a": written(), "b": gathered}, registered="bareon_read")
    assert (again["changed"], after) == (False, page)
    other, after = report(tmp_path, {"a": written()})
    assert other["changed"]
    assert "<dt>date</dt><dd>2026-02-01</dd>" in after


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        pytest.param({"ansible_facts": {"bareon_overrides": "x"}}, "bareon_overrides", id="a fact with the name of an option"),
        pytest.param({"bareon_profle": "general"}, "bareon_profle", id="a misspelt option"),
        pytest.param({"bareon_known_hardware": {"disks": []}}, "disks", id="hardware without disks"),
        pytest.param({"bareon_known_hardware": SMALL}, "root", id="a disk that is too small"),
    ],
)
def test_what_is_wrong_with_one_host_keeps_no_other_from_the_page(tmp_path: Path, variables: dict[str, t.Any], place: str) -> None:
    result, page = report(tmp_path, {"bad": written() | variables, "good": written()})
    assert counts(result) == (2, 1, 0)
    assert page.count('<details class="shape"') == 1
    assert place in page


def test_hosts_that_could_not_be_read_are_shown_with_the_reason(tmp_path: Path) -> None:
    gathered = {"ansible_facts": {"bareon_hardware": HARDWARE}, "bareon_read": {"msg": "read"}}
    hosts = {"dead": {"bareon_read": {"msg": "no route to host"}}, "silent": {}, "there": gathered}
    result, page = report(tmp_path, hosts, registered="bareon_read")
    assert counts(result) == (3, 0, 2)
    assert "no route to host" in page


@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        pytest.param({"unreachable": True, "msg": "no route to host"}, (2, 0, 1), "no route to host", id="unreachable"),
        pytest.param({"failed": True, "msg": "no lsblk here"}, (2, 1, 0), "no lsblk here", id="failed"),
        pytest.param(None, (2, 0, 1), "not asked", id="not asked"),
    ],
)
@pytest.mark.parametrize("place", ["facts", "variables"])
def test_facts_of_an_earlier_run_are_not_planned(
    tmp_path: Path, answer: t.Any, expected: tuple[int, int, int], reason: str, place: str
) -> None:
    old = {"ansible_facts": {"bareon_hardware": HARDWARE}} if place == "facts" else {"bareon_hardware": HARDWARE}
    hosts = {"dead": old | ({} if answer is None else {"bareon_read": answer}), "there": written()}
    result, page = report(tmp_path, hosts, registered="bareon_read")
    assert counts(result) == expected
    assert reason in page
    assert page.count('<details class="shape"') == 1
    assert "<dt>hardware</dt><dd>1 host from bareon_known_hardware</dd>" in page


def test_hardware_that_is_written_down_is_planned_whether_the_host_answers_or_not(tmp_path: Path) -> None:
    hosts = {"dead": written(bareon_read={"unreachable": True, "msg": "no route to host"})}
    result, _page = report(tmp_path, hosts, registered="bareon_read")
    assert counts(result) == (1, 0, 0)


@pytest.mark.parametrize("options", [{}, {"registered": "bareon_read"}], ids=["nobody says who was asked", "left out by a condition"])
def test_facts_of_which_nobody_says_when_they_were_read_are_not_said_to_be_of_this_run(tmp_path: Path, options: dict[str, str]) -> None:
    hosts = {"a": {"ansible_facts": {"bareon_hardware": HARDWARE}, "bareon_read": {"skipped": True}}}
    result, page = report(tmp_path, hosts, **options)
    assert counts(result) == (1, 0, 0)
    assert "<dt>hardware</dt><dd>1 host from facts that may be of an earlier run</dd>" in page


def test_a_host_whose_answer_is_refused_has_no_plan_and_was_asked(tmp_path: Path) -> None:
    hosts = {"liar": {"bareon_read": {"failed": True, "msg": "no fact of the module"}}, "good": written()}
    result, page = report(tmp_path, hosts, registered="bareon_read")
    assert counts(result) == (2, 1, 0)
    assert "no fact of the module" in page


def test_an_unknown_profile_or_host_fails_and_writes_nothing(tmp_path: Path) -> None:
    result, page = report(tmp_path, {"a": written(bareon_profile="databse")})
    assert result["failed"]
    assert "database" in result["msg"]
    assert page == ""
    result, page = report(tmp_path, {"a": written()}, hosts=["a", "b"])
    assert result["failed"]
    assert page == ""


def test_check_mode_writes_nothing_and_tells_what_would_change(tmp_path: Path) -> None:
    result, page = report(tmp_path, {"a": written()}, check=True)
    assert result["changed"] is True
    assert page == ""
