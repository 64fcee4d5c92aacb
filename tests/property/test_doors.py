# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever comes through a door, it is answered or refused with sentences: values of every wrong kind, in every place, several at once."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.connection import local
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.action import disk_plan
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.report import drift
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Target, write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.known_hardware import FACT
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner, parse_reserve
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import known_names
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.disk.planned import whole_plan
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

UUID = "f743c90f-45d7-5765-af56-12889982af99"
ODD = (
    *(None, True, False, -1, 0, 1, 5, 0.5, 1e22, 2**31, 2**53, 2**64, 10**400, -(10**400)),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "x", "5", "-5 GiB", "10G", "30 %", "1" * 5000, "/", "/a b", "yaql=null"),
    *("all", "none", "raid1", "lv", "sda", "\x00", "\ud800", UUID, [], {}, [[]], [None], [1], ["x"], {"id": None}, {"a": {"b": []}}, (1,)),
)
SCHEMA = [
    {"id": "boot", "type": "partition", "size": 512, "mount": "/boot", "fs_type": "ext4", "fs_label": "b", "boot": True},
    {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "min_size": 100, "weight": 2},
    {
        "id": "g",
        "type": "vg",
        "contains": ["root", {"id": "mirror"}, "pool"],
        "max_pvs": 3,
        "encrypt": True,
        "unlock": [{"method": "tpm2", "pcrs": [7]}, {"method": "recovery"}],
    },
    {"id": "pool", "type": "thin_pool", "contains": ["t"], "overcommit": 2, "metadata_size": 4, "chunk_size": "64 KiB"},
    {"id": "fast", "type": "partition", "size": 200, "cache_of": "root", "cache_mode": "writeback"},
    {"id": "t", "type": "thin", "size": 400, "mount": "/t"},
    {"id": "root", "type": "lv", "min_size": "1 GiB", "max_size": "50 %", "mount": "/", "optional": False},
    {
        **{"id": "store", "type": "btrfs", "min_size": 300, "legs": 2, "level": "raid1", "mount_options": "noatime"},
        "subvolumes": [{"name": "@", "mount": "/store", "mount_options": "nodev", "quota": "1 GiB"}, {"name": "@/b"}],
    },
    {
        **{"id": "tank", "type": "zpool", "min_size": 300, "legs": 2, "vdev": "mirror", "vdevs": 1, "ashift": 12, "mount": "/tank"},
        "properties": {"compression": "lz4"},
        "datasets": [{"name": "home", "mount": "/h", "quota": "1 GiB", "reservation": 10, "properties": {"atime": False}}],
    },
    {"id": "data", "type": "partitions", "per_disk": False, "disks": ["sda", "sdb"], "avoid_disks": [], "best_with_disks": ["sdb"]},
]
HARDWARE = {
    "ram": "4 GiB",
    "firmware": "bios",
    "disks": [
        {
            **{"id": name, "path": f"/dev/{name}", "size": 20000, "size_bytes": 20000 * 2**20, "logical_block": 512, "serial": "s"},
            "partitions": [{"start": 1, "size": 100, "start_bytes": 2**20, "name": "p", "dev": f"/dev/{name}1"}],
            "holders": [{"type": "lvm", "volume_group": "v", "name": "n", "size": 50, "members": []}],
            "links": ["/dev/disk/by-id/x"],
        }
        for name in ("sda", "sdb", "sdc")
    ],
}
SPEC = {"memory-size": 1, "cpu-count": 1, "disk-size": 1}
CLUSTER = {
    "groups": [
        {"name": "a", "ipolicy": {"minmax": [{"min": SPEC, "max": SPEC}], "disk-templates": ["plain"], "vcpu-ratio": 4}},
        {"name": "b"},
    ],
    "nodes": [
        {"name": "n", "group": "a", "total_memory": 4096, "total_disk": "1 TiB", "total_cpus": 4, "storage": [{"pool": "p", "total": 5}]},
        {"name": "m", "group": "b", "total_memory": "4G", "total_disk": 9, "total_cpus": 4, "tags": ["x"], "offline": False},
    ],
    "instances": [
        {"name": "i", "memory": 1, "vcpus": 1, "disks": [{"size": 1, "spindles": 1}], "primary": "n", "load": {"cpu": 1}, "networks": []}
    ],
}
WORLD = {
    "providers": [
        {
            "name": "h",
            "uuid": UUID,
            "inventories": {"VCPU": {"total": 8, "allocation_ratio": 2.0}},
            "traits": ["CUSTOM_A"],
            "aggregates": [UUID],
        },
        {"name": "numa", "parent": "h", "inventories": {"VCPU": 4}, "generation": 3},
    ],
    "allocations": {UUID: {"h": {"VCPU": 1}}},
    "custom_traits": ["CUSTOM_B"],
    "custom_classes": ["CUSTOM_C"],
}
REQUEST = {
    "groups": {"": {"resources": {"VCPU": 1}}, "A": {"resources": {"VCPU": 1}, "required": ["CUSTOM_A"], "any_of": [["CUSTOM_A"]]}},
    "same_subtree": [["A"]],
    "root_required": ["CUSTOM_A"],
    "root_member_of": [UUID],
    "isolate": ["A"],
    "can_split": ["VCPU"],
    "limit": 5,
}
CLAIMS = [{"consumer": UUID, "allocations": {"h": {"VCPU": 1}}, "project": "p", "user": "u", "consumer_generation": 1}]
WRITERS: list[tuple[Target, dict[str, t.Any]]] = [
    (kickstart.TARGET, {"version": "RHEL9", "passphrase": None}),
    (curtin.TARGET, {"version": "1", "key_file": "/key"}),
    (curtin.TARGET, {"version": "2", "key_file": None}),
    (ignition.TARGET, {"key_file": None, "tpm2": True}),
    (ignition.BUTANE_TARGET, {"variant": "fcos", "key_file": None, "tpm2": False}),
    (fai.TARGET, {"passphrase": "secret"}),
    (repart.TARGET, {"disk": "/dev/disk/by-id/wwn-0x5000c500a1b20000", "encrypt": "tpm2"}),
    (disko.TARGET, {"password_file": None}),
]
WORDS_OF_QUERIES = ["resources", "=", "VCPU:1", "&", "required", "1", "!", "in:", ",", "limit", UUID, "member_of"]
KNOWN = known_names([], ["CUSTOM_A"])


def places(data: t.Any, place: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place, *(found for key, item in items for found in places(item, (*place, key)))]


def changed(data: t.Any, place: tuple[t.Any, ...], value: t.Any, key: str | None) -> t.Any:
    """Return data with a value at a place, or, where it is a mapping and a key is given, with the value under that key in it."""
    if not place:
        return {**data, key: value} if key is not None and isinstance(data, dict) else value
    data = copy.copy(data)
    try:
        data[place[0]] = changed(data[place[0]], place[1:], value, key)
    except (KeyError, IndexError, TypeError):
        return data  # an earlier change took away what the place lies in
    return data


def damaged(data: t.Any) -> st.SearchStrategy[t.Any]:
    change = st.tuples(st.sampled_from(places(data)), st.sampled_from(ODD), st.sampled_from([None, None, "size", "x", "id"]))
    return st.lists(change, min_size=1, max_size=3).map(lambda changes: apply_all(data, changes))


def apply_all(data: t.Any, changes: t.Iterable[tuple[tuple[t.Any, ...], t.Any, str | None]]) -> t.Any:
    for place, value, key in changes:
        data = changed(data, place, value, key)
    return data


def answered_or_refused(work: t.Callable[[], t.Any]) -> None:
    try:
        work()
    except (InputError, NoSolution) as error:
        told = [mistake.says for mistake in error.mistakes] if isinstance(error, InputError) else [str(error)]
    else:
        told = ["an answer"]
    assert told
    assert all(told)


def plan_and_draw(schema: t.Any, hardware: t.Any, objective: Objective = Objective.FAIR, reserve: t.Any = 0) -> None:
    plan = Planner(schema, objective, parse_reserve(reserve)).plan(hardware)
    picture(plan, hardware, schema if isinstance(schema, list) else ())


@settings(max_examples=examples(400), deadline=None)
@given(damaged(SCHEMA), st.sampled_from(list(Objective)))
def test_schemas_of_disks(schema: t.Any, objective: Objective) -> None:
    answered_or_refused(lambda: plan_and_draw(schema, HARDWARE, objective))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(HARDWARE))
def test_hardware(hardware: t.Any) -> None:
    answered_or_refused(lambda: plan_and_draw(SCHEMA, hardware))


OPTIONS = {
    "schema": SCHEMA,
    "hardware": HARDWARE,
    "objective": "fair",
    "reserve": "1 GiB",
    "eligible": ["usb", "zoned"],
    "unreachable": "skip",
}


def run_disk_plan(options: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the result of a task as Ansible runs it, without a process of its own."""
    task, loader = Task(), DataLoader()
    task.action, task.args = "bareon.allocator.disk_plan", options
    action = disk_plan.ActionModule(
        task, local.Connection(PlayContext()), PlayContext(), loader, Templar(loader=loader, variables={}), None
    )
    return action.run(task_vars={"inventory_hostname": "a", FACT: HARDWARE})


@settings(max_examples=examples(2000), deadline=None)
@given(damaged(OPTIONS))
def test_the_action_that_plans_disks(options: t.Any) -> None:
    result = run_disk_plan(options if isinstance(options, dict) else {"schema": options})
    told = result["msg"] if result.get("failed") else result["summary"]
    assert told
    assert "Traceback" not in told
    assert result.get("failed") or result["plan"]["disks"]


def test_the_action_plans_what_is_not_damaged() -> None:
    assert not run_disk_plan(OPTIONS).get("failed")


OPENED = Planner(
    [
        {
            **{"id": "safe", "type": "partition", "size": 500, "mount": "/safe", "fs_type": "ext4", "encrypt": True},
            "unlock": [
                {"method": "tpm2", "pcrs": [7]},
                {"method": "tang", "url": "http://tang", "thumbprint": "A" * 43},
                {"method": "key_file", "path": "/etc/key"},
                {"method": "recovery"},
            ],
        }
    ]
).plan(HARDWARE)
_SPREAD = ("btrfs", "zpool", "thin_pool", "thin")
SPREAD = Planner([entry for entry in SCHEMA if entry["type"] in _SPREAD] + [{"id": "g", "type": "vg", "contains": ["pool"]}]).plan(HARDWARE)


@settings(max_examples=examples(400), deadline=None)
@given(damaged(whole_plan("bios")) | damaged(SPREAD) | damaged(OPENED), st.sampled_from(WRITERS), st.booleans())
def test_plans_for_installers(plan: t.Any, writer: tuple[Target, dict[str, t.Any]], lossy: bool) -> None:
    target, options = writer
    answered_or_refused(lambda: write_plan(target, plan, None, lossy=lossy, **options))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(whole_plan("bios")) | damaged(SPREAD) | damaged(OPENED), damaged(HARDWARE), st.booleans())
def test_plans_and_facts_that_are_compared(plan: t.Any, facts: t.Any, whole: bool) -> None:
    answered_or_refused(lambda: drift(["a"], {"a": whole_plan("bios") if whole else plan}.get, {"a": facts}.get).to_plain())


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("reserve", ODD, ids=lambda value: repr(value)[:20])
def test_reserves(reserve: t.Any, objective: Objective) -> None:
    answered_or_refused(lambda: plan_and_draw(SCHEMA[:1], HARDWARE, objective, reserve))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(CLUSTER))
def test_clusters(cluster: t.Any) -> None:
    answered_or_refused(lambda: parse_inline(cluster))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(WORLD))
def test_worlds(world: t.Any) -> None:
    answered_or_refused(lambda: parse_world(world))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(REQUEST))
def test_requests(request: t.Any) -> None:
    answered_or_refused(lambda: parse_groups(request if isinstance(request, dict) else {"groups": request}, KNOWN))


@settings(max_examples=examples(400), deadline=None)
@given(
    st.lists(st.sampled_from(["resources", "=", "VCPU:1", "&", "required", "1", "!", "in:", ",", "limit", UUID, "member_of"]), max_size=12)
)
def test_queries(words: list[str]) -> None:
    answered_or_refused(lambda: parse_query("".join(words), KNOWN))


@settings(max_examples=examples(400), deadline=None)
@given(damaged(CLAIMS), damaged(WORLD["providers"]), damaged({"h": {"VCPU": {"total": 1}}}))
def test_what_a_ledger_is_asked(claims: t.Any, providers: t.Any, inventories: t.Any) -> None:
    answered_or_refused(lambda: parse_claims(claims if isinstance(claims, list) else [claims], "consumers[{}]"))
    answered_or_refused(lambda: parse_changes(providers if isinstance(providers, list) else [providers], "providers[{}]"))
    answered_or_refused(lambda: parse_reshape(inventories, "inventories"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("disks", 0, "size"), "50 GiB"),
        (("disks", 0, "size_bytes"), "many"),
        (("disks", 0, "size"), 10**400),
        (("ram",), 10**400),
    ],
    ids=["text", "bytes", "huge disk", "huge memory"],
)
def test_sizes_of_hardware_that_gave_tracebacks(place: tuple[t.Any, ...], value: t.Any) -> None:
    hardware = apply_all(HARDWARE, [(place, value, None)])
    if value == "50 GiB":
        (first, *_others) = Planner(SCHEMA[:1]).plan(hardware)["disks"]
        assert first["size"] == 51200
        assert picture(Planner(SCHEMA[:1]).plan(hardware), hardware).disks[0].size == 51200
    else:
        with pytest.raises(InputError, match=r"hardware\.(disks\[0\]\.size|ram)"):
            Planner(SCHEMA[:1]).plan(hardware)


@pytest.mark.parametrize("value", [1e22, 2**64, 10**400])
@pytest.mark.parametrize("objective", list(Objective))
def test_sizes_that_no_machine_has_are_refused(objective: Objective, value: float) -> None:
    with pytest.raises(InputError, match=r"schema\[0\]\.size"):
        Planner([{"id": "a", "type": "lv", "size": value}], objective).plan(HARDWARE)
    with pytest.raises(InputError, match="reserve"):
        parse_reserve(value)


@pytest.mark.parametrize("name", ["1" * 5000, "sd²", "\u0661"], ids=["many digits", "superscript", "arabic"])
def test_names_of_disks_that_gave_tracebacks(name: str) -> None:
    hardware = apply_all(HARDWARE, [(("disks", 2, "id"), name, None), (("disks", 2, "path"), name, None)])
    assert len(Planner(SCHEMA[:1]).plan(hardware)["disks"]) == 3
