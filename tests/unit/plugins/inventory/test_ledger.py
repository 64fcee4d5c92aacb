# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory plugin as ansible-inventory and ansible-playbook use it: hosts, groups, variables, a cache, and names of any kind."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from functools import partial

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.inventory import ledger as plugin
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.inventory import group_name, host_names

ROOT = pathlib.Path(__file__).resolve().parents[4]
HOSTS = [
    {"name": "host1", "aggregates": ["rack1"], "traits": ["CUSTOM_SAS"]},
    {"name": "host1_numa0", "parent": "host1", "inventories": {"VCPU": 8}},
    {"name": "host2", "inventories": {"VCPU": 8}, "aggregates": ["rack2"]},
]
CLAIMS = [
    {"consumer": "vm1", "project": "red", "user": "ann", "allocations": {"host1_numa0": {"VCPU": 1}}},
    {"consumer": "vm2", "project": "blue", "consumer_type": "VM", "allocations": {"host2": {"VCPU": 2}}},
]


def fill(folder, hosts, claims=()):
    with open_ledger(f"sqlite:///{folder}/ledger.sqlite") as ledger:
        ledger.write(partial(put_providers, changes=parse_changes(hosts, "providers[{}]")))
        for claim in claims:
            make_claims(ledger, parse_claims([claim], "consumers[{}]"))


def run(folder, *command):
    environment = {
        **os.environ,
        "HOME": str(folder),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
        "BAREON_DATABASE": f"sqlite:///{folder}/ledger.sqlite",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ansible", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def plain(value):
    """Strings as they are: ansible-inventory marks those that are no templates."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else {key: plain(each) for key, each in value.items()}
    return list(map(plain, value)) if isinstance(value, list) else value


def inventory(folder, **options):
    (folder / "our.ledger.yml").write_text(yaml.safe_dump({"plugin": "bareon.allocator.ledger", **options}), encoding="utf-8")
    listed = json.loads(run(folder, "inventory", "-i", "our.ledger.yml", "--list"))
    hosts = {name: plain(variables) for name, variables in listed.pop("_meta")["hostvars"].items()}
    return hosts, {name: sorted(group["hosts"]) for name, group in listed.items() if "hosts" in group and name != "ungrouped"}


def test_providers_are_hosts_in_groups_by_trait_aggregate_parent_and_project(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    hosts, groups = inventory(
        tmp_path, compose={"free": "ledger_inventories.VCPU.free"}, keyed_groups=[{"key": "ledger_root", "prefix": "of"}]
    )
    assert groups == {
        "trait_CUSTOM_SAS": ["host1"],
        "aggregate_rack1": ["host1"],
        "aggregate_rack2": ["host2"],
        "parent_host1": ["host1_numa0"],
        "project_red": ["host1", "host1_numa0"],
        "project_blue": ["host2"],
        "of_host1": ["host1", "host1_numa0"],
        "of_host2": ["host2"],
    }
    assert hosts["host1_numa0"]["free"] == 7
    assert hosts["host1_numa0"]["ledger_inventories"] == {"VCPU": {"capacity": 8, "used": 1, "free": 7}}
    assert [(each["name"], each["user"]) for each in hosts["host1"]["ledger_consumers"]] == [("vm1", "ann")]


def test_only_what_a_project_has_claimed(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    hosts, groups = inventory(tmp_path, roots=True, project="red", group_by=["project"])
    assert (sorted(hosts), groups) == (["host1"], {"project_red": ["host1"]})
    assert sorted(inventory(tmp_path, consumer_type="VM")[0]) == ["host2"]


def test_consumers_are_hosts(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    hosts, groups = inventory(
        tmp_path, hosts="consumers", groups={"large": "ledger_allocations.values() | map(attribute='VCPU') | sum > 1"}
    )
    assert sorted(hosts) == ["vm1", "vm2"]
    assert hosts["vm1"]["ledger_allocations"] == {"host1_numa0": {"VCPU": 1}}
    assert (hosts["vm1"]["ledger_roots"], hosts["vm1"]["ledger_project"]) == (["host1"], "red")
    assert groups["project_red"] == groups["parent_host1_numa0"] == groups["parent_host1"] == groups["trait_CUSTOM_SAS"] == ["vm1"]
    assert groups["large"] == ["vm2"]


def test_a_play_runs_on_what_one_has_claimed(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    inventory(tmp_path, roots=True)
    shown = {"ansible.builtin.debug": {"msg": "on {{ inventory_hostname }}: {{ ledger_consumers | map(attribute='name') | join(',') }}"}}
    play = {"name": "Mine", "hosts": "project_red:&trait_CUSTOM_SAS", "gather_facts": False, "tasks": [{"name": "Show", **shown}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    out = run(tmp_path, "playbook", "-i", "our.ledger.yml", "play.yml")
    assert re.findall(r"on (host\w+: [\w,]+)", out) == ["host1: vm1"]


def test_what_was_read_is_cached_if_asked_for(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    cached = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache"), "cache_timeout": 3600}
    first = inventory(tmp_path, **cached)
    fill(tmp_path, [{"name": "host3"}])
    assert inventory(tmp_path, **cached) == first
    assert "host3" in inventory(tmp_path)[0]


def test_hostile_names_are_data(tmp_path):
    bait = tmp_path / "owned"
    template = f"{{{{ lookup('pipe', 'touch {bait}') }}}}"
    names = [template, "localhost", "LOCALHOST", "127.0.0.1", "127.1", "-oProxyCommand=sh", "all", "a,b", "a:b", "[1:3]", "x y", "host."]
    fill(tmp_path, [{"name": name, "inventories": {"VCPU": 1}, "aggregates": ["a rack"]} for name in names])
    fill(tmp_path, [], [{"consumer": template, "project": template, "user": template, "allocations": {"localhost": {"VCPU": 1}}}])
    compose = {"called": "ledger_name", "who": "ledger_consumers | map(attribute='project') | first | default('')"}
    hosts, groups = inventory(tmp_path, compose=compose, keyed_groups=[{"key": "ledger_name", "prefix": "k"}])
    assert all(re.fullmatch(r"[0-9a-f-]{36}", name) for name in hosts)
    assert sorted(variables["called"] for variables in hosts.values()) == sorted(names)
    assert template in {variables["who"] for variables in hosts.values()}
    assert all(re.fullmatch(r"\w+", name) for name in groups)
    assert {name.partition("_")[0] for variables in hosts.values() for name in variables} <= {"ledger", "called", "who"}
    used = "{{ ledger_name }} {{ ledger_consumers }} {{ called }} {{ hostvars[inventory_hostname] }}"
    play = {"name": "All", "hosts": "all", "gather_facts": False, "tasks": [{"name": "Show", "ansible.builtin.debug": {"msg": used}}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    run(tmp_path, "playbook", "-i", "our.ledger.yml", "play.yml")
    assert not bait.exists()


def test_two_names_make_neither_one_host_nor_one_group():
    names = host_names({"uuid1": "Web", "uuid2": "web", "uuid3": "db"})
    assert names == {"uuid1": "uuid1", "uuid2": "uuid2", "uuid3": "db"}
    assert len({group_name("project", name) for name in ("a b", "a_b", "a-b", "a.b", "\u00e4_b")}) == 5
    assert group_name("project", "red_1") == "project_red_1"
    changed = group_name("project", "a b")
    assert group_name("project", changed.removeprefix("project_")) != changed
    first, second = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    assert host_names({first: "localhost", second: first}) == {first: first, second: second}
    assert host_names({first: first, second: second.upper()}) == {first: first, second: second.upper()}


def test_no_host_is_called_like_a_group(tmp_path):
    names = ["project_red", "PROJECT_blue", "trait_CUSTOM_SAS", "aggregate_rack1", "parent_host1", "lent", "Lent", "projects", "host1"]
    fill(tmp_path, [{"name": name, "inventories": {"VCPU": 1}} for name in names])
    hosts, groups = inventory(tmp_path, groups={"lent": "ledger_consumers | length > 0"})
    assert sorted(name for name in hosts if not re.fullmatch(r"[0-9a-f-]{36}", name)) == ["host1", "projects"]
    assert sorted(variables["ledger_name"] for variables in hosts.values()) == sorted(names)
    assert groups == {}
    fill(tmp_path, [], [{"consumer": "project_red", "project": "blue", "allocations": {"host1": {"VCPU": 1}}}])
    play = {"name": "Of red", "hosts": "project_red", "gather_facts": False, "tasks": [{"name": "Show", "ansible.builtin.debug": {}}]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    inventory(tmp_path, hosts="consumers")
    assert "no hosts matched" in run(tmp_path, "playbook", "-i", "our.ledger.yml", "play.yml")


def test_a_database_that_is_not_there_is_one_sentence(tmp_path):
    (tmp_path / "our.ledger.yml").write_text("plugin: bareon.allocator.ledger\ndatabase: oracle://x/y\n", encoding="utf-8")
    with pytest.raises(AssertionError) as error:
        run(tmp_path, "inventory", "-i", "our.ledger.yml", "--list")
    assert "Traceback" not in str(error.value)
    assert "database: has a scheme" in str(error.value)


def test_the_example_is_read(tmp_path):
    fill(tmp_path, HOSTS, CLAIMS)
    fill(tmp_path, [{"name": "host1", "inventories": {"VCPU": 4}}])
    hosts, groups = inventory(tmp_path, **{key: value for key, value in yaml.safe_load(plugin.EXAMPLES).items() if key != "plugin"})
    assert (sorted(hosts), hosts["host1"]["free_cpus"]) == (["host1"], 4)
    assert "rack_rack1" in groups
