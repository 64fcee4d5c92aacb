# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks that plan and report, run on hosts of the sample fleet."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.states import JOURNAL, kept_in_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan, make_plan
from ansible_collections.bareon.allocator.tests.support.house.terminal import too_wide
from ansible_collections.bareon.allocator.tests.support.provider.racks import filled

ROOT = pathlib.Path(__file__).parents[2]


SAMPLE = ROOT / "playbooks" / "inventory" / "sample.yml"


def play(playbook, folder, failed=False, inventory=SAMPLE, settings=(), words=(), **variables):
    """Run a playbook of the collection by its name, from a folder of the user's."""
    command = [sys.executable, "-m", "ansible", "playbook", "--inventory", str(inventory), f"bareon.allocator.{playbook}"]
    environment = {**os.environ, "ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_NOCOLOR": "1", "PWD": "/", **dict(settings)}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".venv" / "collections")
    environment.pop("ANSIBLE_CONFIG", None)
    # Workers inherit standard output, and a pipe that nobody empties would stop them: it goes to a file.
    with (folder / "output.txt").open("w+", encoding="utf-8") as output:
        options = ["--extra-vars", json.dumps(variables), *words]
        done = subprocess.run(
            [*command, *options], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=300
        )
        output.seek(0)
        text = output.read()
    assert (done.returncode != 0) == failed, text
    return text


GPU_CLAIM = {"consumer": "train<1>", "allocations": {"n1": {"PGPU": 1}}, "project": "red"}


def without_what_the_demo_does_not_need(folder):
    """Return a path for Python on which the libraries fail that `make demo` does not install."""
    installed = re.search(r"grep -E '\^\(([^)]*)\)", (ROOT / "Makefile").read_text(encoding="utf-8")).group(1).split("|")
    for name in re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE):
        if name not in [*installed, "jinja2"]:  # Ansible brings Jinja2 along.
            (folder / f"{name.replace('-', '_')}.py").write_text("raise ImportError('is not installed')", encoding="utf-8")
    return str(folder)


def test_demo_plans_the_machine_that_it_runs_on_and_all_samples(tmp_path):
    (tmp_path / "missing").mkdir()
    path = without_what_the_demo_does_not_need(tmp_path / "missing")
    text = play("demo", tmp_path, inventory="localhost,", settings={"PYTHONPATH": path})
    assert "Origin: " not in text, "Ansible warns of what is written in our files"
    written = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "demo").iterdir()}
    assert set(written) == {"erased.html", "fleet.html", "ledger.html", "moves.html", "plans.txt"}
    assert ("this machine" in written["fleet.html"]) != ("There is no plan for it: " in text)
    assert "in 14 shapes" in written["fleet.html"] or "in 13 shapes" in written["fleet.html"]
    told = written["plans.txt"].splitlines()
    assert len(told) < 180, "a few screens"
    assert all(json.dumps(line, ensure_ascii=False) in text for line in told)
    assert too_wide(written["plans.txt"]) == []
    for host in yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))["all"]["children"]["sample"]["hosts"]:
        assert re.search(rf"^{host} .* [0-9]+%$", written["plans.txt"], re.MULTILINE)
    # A mirror, a disk that is left out, with its reason, and disks that stay idle, with what would use them.
    assert any("raid1, 2 disks" in line and "/boot" in line for line in told)
    words = " ".join(written["plans.txt"].split())
    assert re.search(r"app-mixed: usb-\S+ is left out, as it is on USB; eligible: \[usb\] takes it in", words)
    override = re.search(r"app-mixed: 4 of 3.64 TiB each stay idle: - (\{.*?\}) ", words)
    assert {"type": "raid", "level": "raid6", "legs": "all"}.items() <= json.loads(override[1]).items()
    assert "tolerance: " in written["plans.txt"]
    next_steps = written["plans.txt"].partition("Three commands to try next:")[2]
    assert all((ROOT / playbook).exists() for playbook in re.findall(r"playbooks/\S+", next_steps))
    assert next_steps.count("ansible-playbook") == 3


def test_plan_shows_and_draws_each_host_in_the_folder_of_the_user(tmp_path):
    text = play("plan", tmp_path, bareon_hosts="web-1u,nuc")
    assert re.search(r'"    1 +447 GiB +100% +web-1u"', text)
    assert "├─ esp " not in text
    assert f"The drawings are in {tmp_path}/layouts" in text
    assert sorted(file.name for file in (tmp_path / "layouts").iterdir()) == ["nuc.svg", "web-1u.svg"]
    assert ElementTree.parse(tmp_path / "layouts" / "nuc.svg").getroot().get("role") == "img"


def test_plan_shows_each_plan_where_that_is_asked_for(tmp_path):
    text = play("plan", tmp_path, bareon_hosts="web-1u,nuc", bareon_show_plans="true")
    assert re.search(r'"sda +447 GiB', text)
    assert text.count('"├─ esp ') == 2


def test_plan_takes_a_folder_of_its_own(tmp_path):
    text = play("plan", tmp_path, bareon_hosts="nuc", bareon_drawings=str(tmp_path / "elsewhere" / "drawings"))
    assert '"├─ esp ' in text
    assert max(map(len, text.partition("TASK [Show the plan]")[2].partition("TASK")[0].splitlines()[1:])) <= 80
    assert [file.name for file in (tmp_path / "elsewhere" / "drawings").iterdir()] == ["nuc.svg"]


def cache_old_facts(cache, host):
    """Write facts as the cache plugin jsonfile does, into the files that releases of Ansible read."""
    facts = {"bareon_hardware": {"ram": 4096, "disks": [{"id": "of-last-year", "size": 100000, "type": "ssd"}]}}
    (cache / host).write_text(json.dumps(facts), encoding="utf-8")
    (cache / f"s1_{host}").write_text(json.dumps({"__payload__": json.dumps(facts)}), encoding="utf-8")


def test_hardware_of_a_run_before_is_never_planned(tmp_path):
    """A cache of facts has disks that the host no longer has."""
    cache = tmp_path / "cache"
    cache.mkdir()
    cache_old_facts(cache, "here")
    inventory = tmp_path / "hosts.yml"
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory.write_text(json.dumps({"all": {"hosts": {"here": local}}}), encoding="utf-8")
    settings = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache)}
    text = play("report", tmp_path, inventory=inventory, settings=settings)
    assert "of-last-year" not in (tmp_path / "layouts.html").read_text(encoding="utf-8")
    assert "Read what disks there are" in text
    assert "INJECT_FACTS_AS_VARS" not in text


def test_report_does_not_plan_a_host_that_cannot_be_reached_from_a_cache_of_facts(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache_old_facts(cache, "dead")
    inventory = tmp_path / "hosts.yml"
    dead = {"ansible_host": "192.0.2.1", "ansible_port": 9, "ansible_ssh_extra_args": "-o ConnectTimeout=1"}
    known = {"bareon_known_hardware": {"ram": 4096, "disks": [{"id": "written", "size": 200000, "type": "ssd"}]}}
    inventory.write_text(json.dumps({"all": {"hosts": {"dead": dead, "written": known}}}), encoding="utf-8")
    settings = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(cache)}
    text = play("report", tmp_path, inventory=inventory, settings=settings)
    page = (tmp_path / "layouts.html").read_text(encoding="utf-8")
    assert "shows 2 hosts (0 without a plan, 1 not reached)" in " ".join(text.split())
    assert "of-last-year" not in page
    assert "unreachable" in page
    assert page.count('<details class="shape"') == 1


def test_overrides_change_the_profile(tmp_path):
    overrides = [{"id": "home", "state": "absent"}, {"id": "root", "min_size": "20 GiB"}]
    options = {"bareon_profile": "general", "bareon_overrides": overrides, "bareon_drawings": str(tmp_path)}
    text = play("plan", tmp_path, bareon_hosts="nuc", **options)
    assert "├─ root " in text
    assert "home" not in text


def test_report_shows_hosts_with_and_without_a_plan(tmp_path):
    overrides = [{"id": "root", "min_size": "60 GiB", "max_size": "100 GiB"}]
    report = tmp_path / "fleet.html"
    text = play(
        "report",
        tmp_path,
        bareon_hosts="app-mixed,nuc,web-1u",
        bareon_overrides=overrides,
        bareon_report=str(report),
        bareon_title="Rack 12",
    )
    page = report.read_text(encoding="utf-8")
    assert f"{report} shows 3 hosts (1 without a plan, 0 not reached)" in " ".join(text.split())
    assert "<h1>Rack 12</h1>" in page
    assert "root needs at least 61440 MiB" in page
    assert page.count('<details class="shape"') == 2
    assert "Takes most of what is left" in page


def test_report_names_hosts_that_cannot_be_reached(tmp_path):
    hosts = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))
    known = hosts["all"]["children"]["sample"]["hosts"]["nuc"]["bareon_known_hardware"]
    dead = {"ansible_host": "192.0.2.1", "ansible_port": 9, "ansible_ssh_extra_args": "-o ConnectTimeout=1"}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"dead": dead, "nuc": {"bareon_known_hardware": known}}}}), encoding="utf-8")
    text = play("report", tmp_path, inventory=inventory)
    page = (tmp_path / "layouts.html").read_text(encoding="utf-8")
    assert "shows 2 hosts (0 without a plan, 1 not reached)" in " ".join(text.split())
    assert "dead" in page
    assert page.count('<details class="shape"') == 1


def test_report_fails_where_nothing_is_planned_at_all(tmp_path):
    text = play("report", tmp_path, failed=True, bareon_hosts="nuc", bareon_profile="databse")
    assert "did you mean database?" in text
    assert not (tmp_path / "layouts.html").exists()


def test_report_takes_the_profile_of_a_user_as_plan_does(tmp_path):
    schema = [{"id": "all", "type": "partition", "mount": "/srv"}]
    (tmp_path / "mine.yml").write_text(json.dumps({"why": {"all": "Because we say so."}, "schema": schema}), encoding="utf-8")
    for playbook in ("plan", "report"):
        play(playbook, tmp_path, bareon_hosts="nuc", bareon_profile="./mine.yml")
    assert "Because we say so." in (tmp_path / "layouts.html").read_text(encoding="utf-8")


def test_drift_shows_what_is_not_as_planned_and_stops_where_it_must_not_be(tmp_path):
    hosts = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))["all"]["children"]["sample"]["hosts"]
    known = hosts["nuc"]["bareon_known_hardware"]
    (tmp_path / "facts").mkdir()
    (tmp_path / "plans").mkdir()
    plan = make_plan(load_profile(PROFILES / "general.yml"), known)
    for host in ("nuc", "lost"):
        (tmp_path / "plans" / f"{host}.json").write_text(json.dumps(plan), encoding="utf-8")
        (tmp_path / "facts" / host).write_text(
            json.dumps({"bareon_hardware": {"disks": []} if host == "lost" else known}), encoding="utf-8"
        )
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"nuc": {}, "lost": {}, "new": {}}}}), encoding="utf-8")
    asked = {"inventory": inventory, "bareon_facts": "facts", "bareon_title": "Rack 12"}
    text = play("drift", tmp_path, settings={"SOURCE_DATE_EPOCH": "1700000000"}, **asked)
    assert "there is no plan for new" in text
    assert "the disk is gone" in text
    page = (tmp_path / "drift.html").read_text(encoding="utf-8")
    origin = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))
    assert (origin["date"], origin["facts"]) == ("2023-11-14", f"the folder {tmp_path}/facts")
    assert re.fullmatch(r"bareon.allocator [\d.]+, ansible-core [\d.]+\S*", origin["versions"])
    assert "changed=0" in play("drift", tmp_path, settings={"SOURCE_DATE_EPOCH": "1800000000"}, **asked)
    assert "<h1>Rack 12</h1>" in page
    assert "<h2>Not as planned</h2>" in page
    text = play(
        "drift", tmp_path, failed=True, inventory=inventory, bareon_facts="facts", bareon_fail_on=["gone"], bareon_report="gate.html"
    )
    assert "Stop where something is as it must not be" in text
    assert "the disk is gone" in (tmp_path / "gate.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("playbook", "name", "says"),
    [
        ("plan", "bareon_report", "is not read by plan, only by drift, erase, report"),
        ("plan", "group_moves_url", "is not read by plan, only by follow, move"),
    ],
)
def test_what_a_playbook_does_not_read_is_a_warning_where_it_is_given_to_it(tmp_path, playbook, name, says):
    inventory = tmp_path / "hosts.yml"
    known = {"ram": 1024, "disks": [{"id": "disk-a", "type": "ssd", "size": "200 GiB"}]}
    inventory.write_text(json.dumps({"all": {"hosts": {"web": {"bareon_known_hardware": known}}}}), encoding="utf-8")
    text = play(playbook, tmp_path, inventory=inventory, **{name: "x"})
    assert f"{name} {says}" in " ".join(text.split())


def test_what_the_inventory_has_for_other_playbooks_is_left_alone(tmp_path):
    inventory = tmp_path / "hosts.yml"
    known = {"ram": 1024, "disks": [{"id": "disk-a", "type": "ssd", "size": "200 GiB"}]}
    host = {"bareon_known_hardware": known, "bareon_report": "page.html", "group_moves_url": "https://rapi"}
    inventory.write_text(json.dumps({"all": {"hosts": {"web": host}}}), encoding="utf-8")
    assert "is not read by" not in play("plan", tmp_path, inventory=inventory)
    # What a playbook of the user's imports may be several of ours, with variables for each.
    (tmp_path / "site.yml").write_text("- import_playbook: bareon.allocator.plan\n- import_playbook: bareon.allocator.report\n", "utf-8")
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections")}
    environment.pop("ANSIBLE_CONFIG", None)
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(inventory), "site.yml", "-e", "bareon_report=other.html"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is not read by" not in done.stdout + done.stderr
    assert (tmp_path / "other.html").exists()


def test_drift_asks_each_host_where_no_facts_are_given(tmp_path):
    dead = {"ansible_host": "192.0.2.1", "ansible_port": 9, "ansible_ssh_extra_args": "-o ConnectTimeout=1"}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"dead": dead, "here": local}}}), encoding="utf-8")
    (tmp_path / "plans").mkdir()
    for host in ("dead", "here"):
        (tmp_path / "plans" / f"{host}.json").write_text(json.dumps(data_plan()), encoding="utf-8")
    text = play("drift", tmp_path, inventory=inventory)
    assert "nothing is known about dead" in text
    assert "0 of 1 hosts are as planned" in " ".join(text.split())
    assert "the disk is gone" in (tmp_path / "drift.html").read_text(encoding="utf-8")


def test_register_places_machines_and_gives_everything_back(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    text = play("register", tmp_path, bareon_hosts="hci-node,nuc,web-1u", database=f"sqlite:///{ledger}")
    in_use = re.findall(r"(\S+_vg_guests) +DISK_GB +(\d+) ", text)
    assert in_use == [("hci-node_vg_guests", "20"), ("nuc_vg_guests", "20"), ("web-1u_vg_guests", "20")]
    with contextlib.closing(sqlite3.connect(ledger)) as kept:
        assert kept.execute("SELECT COUNT(*) FROM resource_providers").fetchone() == (8,)
        assert kept.execute("SELECT COUNT(*) FROM allocations").fetchone() == (0,)
    assert text.count("changed: [localhost]") == 5
    again = play("register", tmp_path, bareon_hosts="hci-node,nuc,web-1u", database=f"sqlite:///{ledger}")
    assert again.count("changed: [localhost]") == 4, "the hosts are registered already"


def test_register_offers_thin_pools_and_spaces_as_far_as_they_are_to_be_overcommitted(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    schema = [
        {"id": "root", "type": "partition", "size": "12 GiB", "mount": "/", "boot": True},
        {"id": "scratch", "type": "partition", "size": "10 GiB", "mount": "/scratch"},
        {"id": "guests", "type": "vg", "contains": ["thin"]},
        {"id": "thin", "type": "thin_pool", "size": "30 GiB"},
    ]
    options = {"bareon_schema": schema, "bareon_offered": ["scratch"], "bareon_overcommit": "4", "bareon_volume_groups": ["guests"]}
    play("register", tmp_path, bareon_hosts="nuc", database=f"sqlite:///{ledger}", **options)
    with contextlib.closing(sqlite3.connect(ledger)) as kept:
        columns = "p.name, i.total, i.allocation_ratio FROM inventories i JOIN resource_providers p ON p.id = i.provider_id"
        found = {name: (total, ratio) for name, total, ratio in kept.execute(f"SELECT {columns} WHERE i.resource_class = 'DISK_GB'")}
    assert found["nuc_vg_guests_pool_thin"] == (30, 4.0)
    assert found["nuc_partition_scratch"] == (10, 1.0)


def test_ledger_writes_a_page_of_what_the_ledger_has_and_the_same_again(tmp_path):
    books = filled(tmp_path, [{"name": "n1", "aggregates": ["rack7"], "inventories": {"PGPU": 4}}], [GPU_CLAIM])
    assert [claim["consumer"] for claim in books["claims"]] == ["train<1>"]
    text = play("ledger", tmp_path, database=f"sqlite:///{tmp_path}/ledger.sqlite", racks=["rack*"], page="hall.html", title="Hall 2")
    assert "changed: [localhost]" in text
    assert re.search(r"/hall\.html shows 1 host and 1\s+claim\.", text)
    page = (tmp_path / "hall.html").read_text(encoding="utf-8")
    assert "<h1>Hall 2</h1>" in page
    assert "train&lt;1&gt;" in page
    assert "train<1>" not in page


def test_apply_stops_before_anything_where_no_disk_fits(tmp_path):
    text = play("apply", tmp_path, failed=True, bareon_hosts="nuc", bareon_devices=["/dev/there-is-no-such-disk"], bareon_become=False)
    assert "no disk matches '/dev/there-is-no-such-disk' of devices" in text
    assert "hardware.disks" in text
    assert "Carry the layout out" not in text


def test_balance_prints_groups_and_commands(tmp_path):
    text = play("balance", tmp_path, max_data="300 GiB")
    assert re.search(r"group-01 +264\.10777625 ", text)
    assert "gnt-instance replace-disks" in text


CARRIED_OUT = {
    "plan": {
        "moves": [{"instance": "i", "from": ["a"], "steps": [{"kind": "migrate", "from": ["a"], "to": ["b"]}], "data": 0, "memory": 5000}],
        "stages": [[0]],
    },
    "outcomes": [{"move": 0, "step": 0}],
    "round": {"steps": [{"move": 0, "step": 0}], "seconds": 100},
}
"""Arguments of group_progress: a plan, and a round of it with 50 MiB a second."""


@pytest.mark.parametrize("playbook", ["balance", "evacuate", "redistribute"])
def test_the_time_of_a_plan_is_estimated_by_journals_in_files_and_in_a_ledger(tmp_path, playbook):
    follow(CARRIED_OUT | {"directory": str(tmp_path / "journals")}, write=True)
    database = keep_journal(tmp_path)
    ledger = {"state_name": "prod", "database": database}
    text = play(playbook, tmp_path, link_rate="110 MiB", link_journals=str(tmp_path / "journals"), link_ledger=ledger)
    assert re.search(r"50 MiB a second, seen in 2 rounds", " ".join(text.split()))


def keep_journal(folder):
    """Keep a journal in a new ledger, and return its database."""
    database = f"sqlite:///{folder}/ledger.sqlite"
    with kept_in_ledger({"state": "ledger", "state_name": "prod", "database": database}, f"{JOURNAL}{'0' * 16}", writes=True) as kept:
        follow(CARRIED_OUT, write=True, kept=kept)
    return database


@pytest.mark.parametrize("state", ["file", "ledger"])
def test_follow_estimates_by_the_journals_that_it_keeps(tmp_path, state):
    follow(CARRIED_OUT | {"directory": str(tmp_path / "follow" / "journals")}, write=True)
    given = {"follow_state": "ledger", "follow_state_name": "prod", "follow_database": keep_journal(tmp_path)} if state == "ledger" else {}
    text = play("follow", tmp_path, follow_now="2026-03-02T08:00:00Z", follow_urgent_polls=1, follow_link_rate="110 MiB", **given)
    report = json.loads((tmp_path / "follow" / "reports" / "2026-03-02T080000Z.json").read_text(encoding="utf-8"))
    assert (report["plan"]["seconds"]["rate"], report["plan"]["seconds"]["rounds"]) == (50.0, 1), text


def test_follow_decides_for_the_sample_and_goes_on_with_what_it_decided(tmp_path):
    first = play("follow", tmp_path, follow_now="2026-03-02T07:55:00Z")
    assert re.search(r"group-01: down, drained, n1 wrong, seen in 1 of 2\W+runs in a row;\W+waits whether it stays so", first)
    assert not (tmp_path / "follow" / "reports").exists()
    text = play("follow", tmp_path, follow_now="2026-03-02T08:00:00Z")
    assert "group-01: repairs what is wrong (down, drained, n1)" in text
    reports = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "follow" / "reports").iterdir()}
    assert set(reports) == {"2026-03-02T080000Z.html", "2026-03-02T080000Z.json"}
    told = json.loads(reports["2026-03-02T080000Z.json"])
    assert told["plan"]["moves"][0]["instance"] in reports["2026-03-02T080000Z.html"]
    kept = (tmp_path / "follow" / "state.json").read_text(encoding="utf-8")
    again = play("follow", tmp_path, follow_now="2026-03-02T08:05:00Z")
    assert "group-01: goes on with the moves of an earlier run" in again
    assert "changed=0" in again
    assert (tmp_path / "follow" / "state.json").read_text(encoding="utf-8") == kept


def test_machines_without_a_system_are_planned_from_records(tmp_path):
    """Each host has a record of another source; none of them exists, and none is asked."""
    (tmp_path / "records").mkdir()
    hosts = {}
    for source in ("ironic", "maas", "redfish", "lshw", "lsblk", "ansible_devices"):
        record = ROOT / "tests" / "unit" / "data" / "recorded" / f"{source}.json"
        (tmp_path / "records" / f"of-{source}.json").write_text(record.read_text(encoding="utf-8"), encoding="utf-8")
        hosts[f"of-{source}"] = {"bareon_source": source, "ansible_host": "192.0.2.1"}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    local = {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}, "here": {"hosts": local}}), encoding="utf-8")
    (tmp_path / "mine.yml").write_text(json.dumps({"schema": [{"id": "data", "type": "partition", "mount": "/srv"}]}), encoding="utf-8")
    options = {"bareon_firmware": "uefi", "bareon_eligible": ["in_use", "usb"], "bareon_profile": "./mine.yml"}
    text = play("recorded", tmp_path, inventory=inventory, bareon_hosts="all:!here", **options)
    assert "does not say whether disks are in use and what is on the disks" in " ".join(text.split())
    plans = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "plans").iterdir()}
    assert set(plans) == set(hosts)
    assert all(plan["schema"]["parteds"] for plan in plans.values())
    (tmp_path / "records" / "of-maas.json").write_text('{"hostname": "of-maas", "physicalblock', encoding="utf-8")
    (tmp_path / "records" / "of-ironic.json").unlink()
    wrong = play("recorded", tmp_path, failed=True, inventory=inventory, bareon_hosts="of-maas,of-ironic", **options)
    assert "hardware_from_maas: is not complete JSON: Unterminated string" in " ".join(wrong.split())
    assert "records/of-ironic.json is not there; it is to hold what is recorded of of-ironic" in " ".join(wrong.split())
    wrong = play("recorded", tmp_path, failed=True, inventory=inventory, bareon_hosts="of-maas", bareon_source="paper")
    assert "bareon_source must be ironic, maas" in " ".join(wrong.split())


def test_plans_are_their_owners_alone_and_pages_are_for_all(tmp_path):
    """What is there keeps its mode; a link is replaced, and what it points to stays."""
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    folder = tmp_path / "new" / "below"
    text = play("evacuate", tmp_path, plan_file=str(folder / "plan.json"), page=str(folder / "page.html"))
    assert "Write the plan" in text
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (folder, *folder.iterdir())}
    # The page comes first, and so does its folder.
    assert modes == {"below": 0o755, "plan.json": 0o600, "page.html": 0o644}
    written = (folder / "plan.json").read_text(encoding="utf-8")
    (folder / "plan.json").write_text("old", encoding="utf-8")
    (folder / "plan.json").chmod(0o640)
    (folder / "page.html").unlink()
    (folder / "page.html").symlink_to(victim)
    play("evacuate", tmp_path, plan_file=str(folder / "plan.json"), page=str(folder / "page.html"))
    assert (folder / "plan.json").read_text(encoding="utf-8") == written
    assert (folder / "plan.json").stat().st_mode & 0o7777 == 0o640
    assert victim.read_text(encoding="utf-8") == "precious"
    assert not (folder / "page.html").is_symlink()
    again = play("evacuate", tmp_path, plan_file=str(folder / "plan.json"), page=str(folder / "page.html"))
    assert re.search(r"changed=0 ", again)
    play("evacuate", tmp_path, plan_file=str(tmp_path / "alone" / "plan.json"))
    assert (tmp_path / "alone").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    ("playbook", "task", "variables"),
    [
        ("plan", "Plan the disks", {"bareon_plans": "plans", "bareon_hosts": "web-1u", "bareon_profile": "database"}),
        ("erase", "Erase the disks", {"bareon_hosts": "web-1u", "bareon_erase": ["/dev/sda"], "bareon_protect": ["/dev/sda"]}),
        ("balance", "Write a page that shows the plan", {"page": "page.html"}),
        ("ledger", "Read the ledger", {"database": "sqlite:///books.sqlite"}),
    ],
)
def test_options_are_not_passed_over_where_a_playbook_starts_in_the_middle(tmp_path, playbook, task, variables):
    text = play(playbook, tmp_path, failed=True, words=("--start-at-task", task), **variables)
    assert "start at the first task" in text
    assert not [path for path in tmp_path.iterdir() if path.name in {"plans", "layouts", "page.html", "ledger.html", "erased.html"}]


@pytest.mark.parametrize(
    "file", sorted((ROOT / "playbooks").glob("*.yml")) + sorted((ROOT / "roles").rglob("*.yml")), ids=lambda path: path.name
)
def test_no_option_that_was_not_taken_has_its_default(file):
    read = re.findall(r"_pinned\.options(?![\w]).*", file.read_text(encoding="utf-8"))
    assert [
        line
        for line in read
        if not re.match(r"_pinned\.options(\.\w+)? \| mandatory\(|_pinned\.options\.become \| default\(true\) if", line)
    ] in (
        [],
        ['_pinned.options.plan_file | dirname | realpath }}/journals"'],
    )
