# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What reads untrusted input: every action, every filter, every parser; each with sound inputs, and with the errors that it may raise.

An action may fail, but returns that; what nobody foresaw has the key `exception` in its result.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import random
import re
import tempfile
import typing as t
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ansible.errors import AnsibleError, AnsibleFilterError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.connection import local
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES

from ....plugins.inventory import ledger
from ....plugins.lookup import usages
from ....plugins.module_utils._booting import firmware
from ....plugins.module_utils._data import units
from ....plugins.module_utils._data.errors import InputError, Mistake, NoSolution, Unavailable
from ....plugins.module_utils._facts import health, lsblk, mounts, node, select, signatures, stacks, udev
from ....plugins.module_utils._facts.hardware import read_hardware
from ....plugins.module_utils._facts.host import Outcome
from ....plugins.module_utils._keys import header, jwe
from ....plugins.module_utils._keys.options import request_of
from ....plugins.module_utils._schema.bareon.convert import read_bareon_list
from ....plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ....plugins.module_utils._steps.machine import StepFailed
from ....plugins.module_utils._storage import lvm, zfs
from ....plugins.plugin_utils._common import answers
from ....plugins.plugin_utils._disk.planner import Planner
from ....plugins.plugin_utils._disk.schema.profiles import read_profile
from ....plugins.plugin_utils._group.follow.record import read_record
from ....plugins.plugin_utils._group.plan.journal import read_journal
from ....plugins.plugin_utils._group.plan.kept import KeptFile
from ....plugins.plugin_utils._group.plan.links import measured_rates
from ....plugins.plugin_utils._group.sources.iallocator import parse_iallocator, parse_json, requested_instances
from ....plugins.plugin_utils._group.sources.libvirt import documents as libvirt
from ....plugins.plugin_utils._group.sources.proxmox.documents import Reading, parse_proxmox
from ....plugins.plugin_utils._group.sources.rapi import parse_rapi
from ....plugins.plugin_utils._group.sources.text import parse_text
from ....plugins.plugin_utils._provider.ledger.url import parse_database
from ....plugins.plugin_utils._provider.request.query import parse_query
from ....plugins.plugin_utils._provider.world.names import known_names
from ..host.recorded_host import RecordedHost
from .ledgers import change_rows, copied, damage_rows, tables_of
from .mutations import mutate
from .on_disk import BYTES, TEXTS, damage_bytes

PACKAGE = __name__.rpartition(".tests.")[0]
ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "unit" / "data"
REFUSED = (InputError, NoSolution, Unavailable)


@dataclass(frozen=True)
class Target:
    """Something that reads: sound inputs, how one is read, the errors that may come of a damaged one; `damage` makes one of a sound one."""

    name: str
    sound: Sequence[t.Any]
    read: Callable[[t.Any], t.Any]
    refuses: tuple[type[BaseException], ...]
    damage: Callable[[random.Random, t.Any], t.Any] = mutate
    price: int = 1
    """How many times fewer calls it gets than others, for what takes long."""

    def call(self, given: t.Any) -> None:
        """Read an input. Raises what nobody foresaw."""
        with contextlib.suppress(*self.refuses):
            self.read(given)


def text_of(path: str) -> str:
    return (DATA / path).read_text(encoding="utf-8")


def data_of(path: str) -> t.Any:
    return json.loads(text_of(path))


# What Ansible calls: actions, filters, lookups.


class Unforeseen(Exception):
    """An action's result says that nobody foresaw an input."""


def act(name: str, folder: pathlib.Path, *, check: bool = True) -> Callable[[t.Any], t.Any]:
    """Return what runs an action with options, as Ansible does, without a process of its own.

    Damaged options name files anywhere, so it is in check mode, which writes none, and relative paths begin in the folder.
    """
    module = importlib.import_module(f"{PACKAGE}.plugins.action.{name}")

    def run(options: t.Any) -> t.Any:
        task, loader = Task(), DataLoader()
        loader.set_basedir(str(folder))
        task.action, task.check_mode = f"bareon.allocator.{name}", check
        task.args = {str(key): value for key, value in options.items()} if isinstance(options, dict) else {}
        context = PlayContext()
        action = module.ActionModule(task, local.Connection(context), context, loader, Templar(loader=loader, variables={}), None)
        with contextlib.chdir(folder):
            result = action.run(task_vars={"inventory_hostname": "a", "hostvars": {}})
        if "exception" in result or (result.get("failed") and not result.get("msg")):
            raise Unforeseen(result.get("exception") or result)
        return result

    return run


SCHEMA = [
    {"id": "boot", "type": "partition", "size": 512, "mount": "/boot", "fs_type": "ext4", "fs_label": "b", "boot": True},
    {"id": "g", "type": "vg", "contains": ["root", "mirror"], "max_pvs": 2, "encrypt": True, "unlock": [{"method": "recovery"}]},
    {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "min_size": 100},
    {
        "id": "root",
        "type": "lv",
        "min_size": "1 GiB",
        "max_size": "50 %",
        "mount": "/",
        "best_with_disks": "yaql=$.disks.where($.size > 1)",
    },
]
HARDWARE = {
    "ram": 4096,
    "firmware": "bios",
    "disks": [
        {
            "id": name,
            "path": f"/dev/{name}",
            "dev": f"/dev/{name}",
            "size": 40000,
            "size_bytes": 40000 * 2**20,
            "logical_block": 512,
            "type": "ssd",
        }
        for name in ("sda", "sdb")
    ],
}
CLUSTER: dict[str, t.Any] = {
    "groups": [{"name": "a"}, {"name": "b"}],
    "nodes": [
        {"name": f"{group}{number}", "group": group, "total_memory": 8192, "total_disk": "1 TiB", "total_cpus": 8, "tags": ["rack:1"]}
        for group in ("a", "b")
        for number in range(3)
    ],
    "instances": [
        {
            **{"name": f"i{number}", "memory": 1024, "vcpus": 1, "disk": 1024, "primary": "a0", "secondary": "a1"},
            **{"networks": [], "tags": ["x"], "load": {"cpu": 1}},
        }
        for number in range(3)
    ],
    "rules": [{"type": "anti_affinity", "instances": ["i0", "i1"]}],
}
_POOLS = [{"type": "internal", "pool": pool, "total": 9000, "free": free} for pool, free in (("slow", 1000), ("fast", 9000))]
STORED: dict[str, t.Any] = {
    "nodes": [{"name": "n1", "total_memory": 9000, "total_cpus": 8, "storage": _POOLS}],
    "instances": [
        {
            **{"name": f"s{number}", "memory": 1, "vcpus": 1, "primary": "n1", "disk_template": "plain"},
            "disks": [{"size": 4000, "name": "disk0", "storage": {"type": "internal", "pool": "slow"}}],
        }
        for number in range(2)
    ],
}
STEP = {"kind": "migrate", "from": ["a0", "a1"], "to": ["a1", "a0"], "node": "a1", "online": True, "command": "gnt-instance migrate -f i0"}
MOVE = {
    "instance": "i0",
    "kind": "failover",
    "group": "a",
    "from": ["a0", "a1"],
    "to": ["a1", "a0"],
    "steps": [STEP],
    "after": [],
    "data": 1,
    "memory": 1024,
}
MOVES = {"moves": [MOVE], "stages": [[0]]}
ROUND = {"steps": [{"move": 0, "step": 0}], "seconds": 90.5}
UUID = "f743c90f-45d7-5765-af56-12889982af99"
HOST_FILES = {
    "/etc/fstab": "UUID=1 / ext4 defaults 0 1\n# note\nLABEL=x\\040y /srv xfs noatime 0 2\n",
    "/etc/crypttab": "x UUID=2 /etc/keys/x luks,discard\n",
    "/etc/mdadm/mdadm.conf": "ARRAY /dev/md0 metadata=1.2 UUID=c872fca4:84f41c22:00000000:00000000\n",
    "/proc/self/mountinfo": "29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n",
}
WORLD = {
    "providers": [
        {"name": "h", "uuid": UUID, "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": 999}, "traits": ["CUSTOM_A"], "aggregates": [UUID]},
        {"name": "n", "parent": "h", "inventories": {"VCPU": 4}},
    ],
    "allocations": {UUID: {"h": {"VCPU": 1}}},
    "custom_traits": ["CUSTOM_A"],
}
REQUEST = {
    "groups": {"": {"resources": {"VCPU": 1}}, "A": {"resources": {"VCPU": 1}, "required": ["CUSTOM_A"]}},
    "same_subtree": [["A"]],
    "group_policy": "none",
}

ERASURE = {
    **{name: name for name in ("disk", "serial", "wwn", "model", "method", "way", "level", "started", "ended", "checked")},
    **{"size": 1, "verified": True},
}
WISHES = {"with": [UUID], "not_with": ["other"], "prefer": [{"trait": "CUSTOM_A", "weight": 2}, {"aggregate": UUID}]}


def actions(folder: pathlib.Path) -> Iterator[Target]:
    """Yield every action that plans; those of hosts only hand over to modules."""
    database = f"sqlite:///{folder}/ledger.sqlite"
    plan = Planner(SCHEMA).plan(HARDWARE)
    files = {
        "cluster.data": text_of("group/cluster.data"),
        "rapi.json": json.dumps({name: data_of(f"group/rapi/{name}.json") for name in ("info", "groups", "nodes", "instances")}),
        "proxmox.json": text_of("group/proxmox.json"),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = [
        {"source": {"type": "ganeti_text", "path": str(folder / "cluster.data")}},
        {"source": {"type": "ganeti_rapi", "path": str(folder / "rapi.json"), "validate_certs": True}},
        {"source": {"type": "proxmox", "path": str(folder / "proxmox.json"), "load": {"mode": "assigned"}, "local_disks": False}},
        {"source": {"type": "ledger", "database": database, "aggregates": {"g": UUID}}},
    ]
    cluster = {"cluster": CLUSTER}
    new = [{"name": "new", "memory": 1, "vcpus": 1, "disk": 1}]
    progress = {"plan": MOVES, "directory": str(folder / "journals"), "kinds": ["migrate"], "at_once": 1, "per_node": 0}
    progress |= {"where": {"i0": ["a0", "a1"]}, "storages": {"i0": {"disk0": "local"}}, "outcomes": [{"move": 0, "step": 0, "job": "7"}]}
    progress["round"] = ROUND
    window = {"days": ["mon"], "from": "22:00", "to": "23:00"}
    follow = {**cluster, "state_file": str(folder / "state.json"), "windows": [window], "timezone": "UTC", "now": "2026-01-01T00:00:00Z"}
    matching = {"database": database, "matching": {"resources": {"VCPU": 1}, "required": ["CUSTOM_A"]}}
    options: dict[str, list[dict[str, t.Any]]] = {
        "disk_plan": [
            {"schema": SCHEMA, "hardware": HARDWARE, "reserve": "1 GiB", "eligible": ["usb"], "objective": "fair"},
            {"profile": "general", "overrides": [{"id": "root", "size": 4096}], "hardware": HARDWARE},
            {"schema": SCHEMA, "overrides": [{"id": "root", "state": "absent"}], "hardware": HARDWARE, "plans_to": str(folder / "plans")},
        ],
        "disk_report": [{"hosts": [], "dest": str(folder / "layouts.html"), "title": "Rack", "overrides": [], "eligible": ["usb"]}],
        "disk_drift": [{"plans": {"a": plan}, "hardware": {"a": HARDWARE}, "hosts": ["a"], "root": "/", "fail_on": ["new"]}],
        "disk_plan_diff": [
            {"before": {"a": plan}, "after": {"a": plan, "b": plan}, "hosts": ["a"], "tolerance": 5, "fail_on": ["smaller"]}
        ],
        "group_info": [cluster, *sources, {**cluster, "export": ["cluster", "ganeti_text"], "score": "capacity"}],
        "group_place": [{**cluster, "instances": new, "group": "a", "nodes": ["a0"]}],
        "group_evacuate": [
            {**cluster, "nodes": ["a0"], "link_rate": "110 MiB", "link_journals": str(folder / "journals")},
            {**cluster, "instances": ["i0"], "across_groups": "true"},
        ],
        "group_balance": [
            {**cluster, "groups": ["a"], "max_moves": 1, "load": {"i0": {"cpu": 1}}, "node_load": {"a0": {"cpu": 1}}, "max_data": "1 GiB"},
            {**cluster, "min_gain": 0.1, "data_price": 0.1, "move_price": 0.1, "restart_price": 0.1},
            {"cluster": STORED, "of": "storage", "tolerance": 0.1},
        ],
        "group_capacity": [{**cluster, "spec": {"memory": 128, "disk": 1024, "vcpus": 1}, "want": 2, "groups": ["a"], "tiered": False}],
        "group_compress": [{**cluster, "groups": ["a"]}, {**cluster, "group": "a"}],
        "group_redistribute": [{**cluster, "groups": ["a", "b"], "tolerance": 0.2, "max_moves": 1, "load": {"i0": {"cpu": 1}}}],
        "group_maintenance": [{**cluster, "nodes": ["a0"], "node_tags": ["rack:"], "max_nodes": 1}],
        "group_squeeze": [{**cluster, "target_resources": 2.0, "minimal_resources": 1.0}],
        "group_follow": [
            follow | {"groups": ["a"], "resources": ["memory"], "threshold": 1.0, "confirm": 1, "max_moves": 1},
            follow | {"link_rate": 110, "link_ledger": {"state_name": "production", "database": database}},
        ],
        "group_progress": [progress],
        "controller_file": [{"dest": str(folder / "page.html"), "content": "text", "public": True}],
        "provider": [{"world": WORLD, "name": "x", "inventories": {"VCPU": 1}}, {"database": database, "providers": WORLD["providers"]}],
        "provider_backup": [{"database": database, "path": str(folder / "saved.sqlite"), "timeout": 5}],
        "provider_restore": [{"database": database, "path": str(folder / "backup.sqlite"), "timeout": 5}],
        "provider_info": [{"world": WORLD, "providers": ["h"]}, {"world": WORLD, "consumers": [UUID], "audit": True}, matching],
        "provider_candidates": [
            {"world": WORLD, **REQUEST, "limit": 5},
            {"world": WORLD, "query": "resources=VCPU:1&limit=2"},
            {"world": WORLD, "one_of": [REQUEST, {"query": "resources=VCPU:1"}], **WISHES, "limit": 2},
        ],
        "provider_allocation": [
            {"database": database, "consumer": UUID, "allocations": {"h": {"VCPU": 1}}, "project": "p", "retries": 1},
            {"database": database, "consumers": [], "inventories": {"h": {"VCPU": 4}}},
            {"database": database, "consumer": UUID, "request": REQUEST, "retries": 1, "timeout": 5},
            {"database": database, "consumer": UUID, "request": {"one_of": [REQUEST], **WISHES}, "retries": 1, "timeout": 5},
            {
                "database": database,
                "requests": [
                    {"consumer": "a", "request": REQUEST, "project": "p"},
                    {"consumer": "b", "request": {"query": "resources=VCPU:1"}},
                ],
                "gang": {"within": "aggregate", "apart": "provider", "aggregates": [UUID]},
                "retries": 1,
                "timeout": 5,
            },
            {
                "database": database,
                "requests": [{"consumer": "c", "request": REQUEST, "lease": "7d"}],
                "all_or_nothing": False,
                "timeout": 5,
            },
            {"database": database, "consumers": [{"consumer": UUID, "allocations": {"h": {"VCPU": 1}}, "lease": "2h"}]},
        ],
        "provider_reconcile": [
            {"database": database, "existing": ["a", {"consumer": UUID, "project": "p"}], "older_than": "1h", "providers": ["h"]},
            {"database": database, "existing": ["a"], "project": "p", "user": "u", "consumer_type": "VM", "release": True, "timeout": 5},
        ],
        "provider_quota": [{"database": database, "project": "p", "limits": {"VCPU": 4}, "timeout": 5}],
        "provider_capacity": [{"world": WORLD, **{key: REQUEST[key] for key in REQUEST if key == "groups"}, "budget": 1000}],
        "provider_history_info": [{"database": database, "since": "7d", "until": "2030-01-01", "provider": "h", "limit": 10, "timeout": 5}],
        "provider_reap": [{"database": database, "keep_history": "7d", "timeout": 5}],
    }
    act("provider", folder, check=False)({"database": database, "providers": WORLD["providers"], "custom_traits": WORLD["custom_traits"]})
    act("provider", folder, check=False)({"database": f"sqlite:///{folder}/backup.sqlite", "providers": WORLD["providers"]})
    slow = {
        "provider": 4,
        "provider_backup": 4,
        "provider_restore": 4,
        "provider_allocation": 4,
        "group_capacity": 2,
        "group_redistribute": 2,
        "disk_plan": 2,
    }
    for name, sound in options.items():
        # A search that is cut off by its count ends soon; one of minutes tells nothing of its input.
        yield Target(name, sound, act(name, folder), (), damage=_cheap, price=slow.get(name, 1))


def ledgers(folder: pathlib.Path) -> Iterator[Target]:
    """Yield every action that reads a ledger, on ledgers with rows of somebody else."""
    sound, changed = folder / "sound.sqlite", folder / "changed.sqlite"
    database = f"sqlite:///{sound}"
    act("provider", folder, check=False)({"database": database, "providers": WORLD["providers"], "custom_traits": ["CUSTOM_A"]})
    claim = {"database": database, "consumer": UUID, "allocations": {"h": {"VCPU": 1}}, "project": "p", "user": "u"}
    act("provider_allocation", folder, check=False)(claim)
    kept = {"plan": MOVES, "state": "ledger", "state_name": "g", "at_once": 1}
    act("group_progress", folder, check=False)(kept | {"database": database})
    there = {"database": f"sqlite:///{changed}"}
    source = {"source": {"type": "ledger", **there, "aggregates": {"g": UUID}}}
    state = {"state_file": str(folder / "state.json"), "now": "2026-01-01T00:00:00Z"}
    new = {"instances": [{"name": "new", "memory": 1, "vcpus": 1, "disk": 1}]}
    asked: dict[str, list[dict[str, t.Any]]] = {
        "provider": [there | {"providers": WORLD["providers"]}, there | {"name": "n", "state": "absent"}],
        "provider_allocation": [there | {"consumer": "c", "request": REQUEST}, there | {"consumer": UUID, "state": "absent"}],
        "provider_backup": [there | {"path": str(folder / "rows.sqlite")}],
        "provider_candidates": [there | REQUEST | {"limit": 5}],
        "provider_info": [there | {"audit": True}, there | {"matching": {"resources": {"VCPU": 1}}}, there | {"consumers": [UUID]}],
        "provider_restore": [{"database": f"sqlite:///{folder}/restored.sqlite", "path": str(changed)}],
        "provider_capacity": [there | {"groups": REQUEST["groups"], "budget": 1000}],
        "provider_history_info": [there | {"since": "7d", "provider": "h"}, there | {"project": "p", "limit": 2}],
        "provider_quota": [there | {"project": "p", "limits": {"VCPU": 4}}, there | {"project": "p", "state": "absent"}],
        "provider_reap": [there, there | {"keep_history": "1m"}],
        "provider_reconcile": [
            there | {"existing": ["a"], "project": "p", "release": True},
            there | {"existing": [UUID], "older_than": "1h"},
        ],
        "group_info": [source],
        "group_balance": [source],
        "group_capacity": [source | {"spec": {"memory": 128, "disk": 1024, "vcpus": 1}}],
        "group_compress": [source],
        "group_evacuate": [source | {"nodes": ["h"]}],
        "group_follow": [source | state],
        "group_maintenance": [source | {"nodes": ["h"]}],
        "group_place": [source | new],
        "group_progress": [there | kept, there | kept | {"outcomes": [{"move": 0, "step": 0, "job": "7"}]}],
        "group_redistribute": [source],
        "group_squeeze": [source],
    }
    draws = damage_rows(tables_of(sound))
    for name, options in asked.items():
        yield Target(f"rows of a ledger in {name}", [[]], _on_rows(name, folder, sound, changed, options), (), damage=draws, price=4)
    sources = [[there["database"], "p"], [there["database"], None]]
    yield Target("ledger", sources, lambda given: _hosts_of(given, changed, sound, []), (AnsibleError,), damage=_one_argument, price=4)
    of_rows = "rows of a ledger in the inventory"
    yield Target(of_rows, [[]], lambda rows: _hosts_of(sources[1], changed, sound, rows), (AnsibleError,), damage=draws, price=4)
    look = _on_rows("", folder, sound, changed, [there])
    yield Target("rows of a ledger in usages", [[]], look, (AnsibleError,), damage=draws, price=4)


_HOST = re.compile("[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")


def _hosts_of(given: t.Any, changed: pathlib.Path, sound: pathlib.Path, rows: t.Any) -> None:
    """Have the inventory plugin find hosts in a ledger; each is called by a plain name. Ansible itself sees to the kinds of its options."""
    change_rows(copied(sound, changed), rows)
    for hosts in ("providers", "consumers"):
        options = {"database": given[0], "project": given[1], "hosts": hosts, "timeout": 5.0, "roots": False, "strict": True}
        options |= {"group_by": ["trait", "aggregate", "parent", "project"], "compose": {}, "groups": {}, "keyed_groups": []}
        plugin, inventory = ledger.InventoryModule(), InventoryData()
        plugin._read_config_data = lambda _path: None
        plugin.get_option = options.get
        plugin.parse(inventory, DataLoader(), "ledger.yml", cache=False)
        odd = [name for name in inventory.hosts if not _HOST.fullmatch(name)]
        if odd:
            raise Unforeseen(f"hosts are called {odd!r:.200}")


def _on_rows(
    name: str, folder: pathlib.Path, sound: pathlib.Path, changed: pathlib.Path, options: list[dict[str, t.Any]]
) -> Callable[[t.Any], t.Any]:
    def read(rows: t.Any) -> None:
        for each in options:
            change_rows(copied(sound, changed), rows)
            with warnings.catch_warnings():
                # What NumPy only warns of is computed with, and wrong.
                warnings.simplefilter("error", RuntimeWarning)
                result = act(name, folder)(each) if name else _look_up([each["database"]])
            shown = [str(result.get(key, "")) for key in ("msg", "summary")] if isinstance(result, dict) else []
            if any("\x1b" in text or "\u202e" in text for text in shown):
                raise Unforeseen(f"what nobody sees is shown: {shown}")
            if not rows and isinstance(result, dict) and result.get("failed"):
                raise Unforeseen(f"it is refused as it is: {shown}")

    return read


def _cheap(draw: random.Random, sound: t.Any) -> t.Any:
    """Return damaged options, but none that ask for another server, or for other processes than this one."""
    options = mutate(draw, sound)
    if isinstance(options, dict):
        options.pop("scheduler", None)
        source = options.get("source")
        if isinstance(source, dict):
            source.pop("url", None)
    return options


def filters(folder: pathlib.Path) -> Iterator[Target]:
    """Yield every filter; its arguments are damaged one at a time, so that it is still called as a template calls it."""
    plan = Planner(SCHEMA).plan(HARDWARE)
    plain = Planner([{"id": "data", "type": "partition", "size": 900, "mount": "/data", "fs_type": "ext4"}]).plan(HARDWARE)
    whole = Planner([{"id": "data", "type": "disk"}]).plan(HARDWARE)
    known = [{"id": f"/dev/disk/by-id/wwn-0x5000c500a1b2c3d{at}", "size": 20000} for at in range(2)]
    image = Planner([{"id": "root", "type": "raid", "level": "raid1", "fs_type": "ext4", "mount": "/"}]).plan({"disks": known})
    applied = {
        "schema": {"fss": [{"device": "/dev/a", "mount": "/a", "fs_type": "ext4"}]},
        "filesystems": [{"device": "/dev/a", "uuid": "u", "mountpoints": []}],
    }
    node_facts = {"processor_vcpus": 4, "memtotal_mb": 4096}
    moves = act("group_evacuate", folder)({"cluster": CLUSTER, "nodes": ["a0"]})
    recorded = {name: data_of(f"recorded/{name}.json") for name in ("ansible_devices", "ironic", "lsblk", "lshw", "maas", "redfish")}
    bareon = [
        {"id": {"type": "name", "value": "sda"}, "type": "disk", "size": "20000 MiB", "volumes": [{"type": "boot", "size": "300 MiB"}]}
    ]
    sound: dict[str, list[list[t.Any]]] = {
        "bareon_to_static": [[bareon, HARDWARE]],
        "from_mib": [[512], ["51200"]],
        "to_mib": [["50 GiB"]],
        "join_url": [["https://c:5080", "2", "x"]],
        **{f"hardware_from_{name}": [[data], [json.dumps(data)]] for name, data in recorded.items()},
        "layout_to_host_files": [[applied, HOST_FILES]],
        "ledger_to_html": [[act("provider_info", folder)({"world": WORLD}), ["r*"], "Ledger"]],
        "ledger_to_placement": [[act("provider_info", folder)({"world": WORLD}), "red", "ann", "INSTANCE"]],
        "netbox_to_providers": [
            [data_of("provider/netbox_devices.json"), {"VCPU": "cpus"}, data_of("provider/netbox_inventory_items.json"), {"PGPU": "gpu"}]
        ],
        "erasures_to_html": [[{"a": [ERASURE]}, "Erased"]],
        "moves_to_html": [[moves, "Moves"]],
        "plan_to_ceph": [[whole, HARDWARE, "host", "osds", ["data*"]]],
        "plan_to_butane": [[plain, "fcos"]],
        "plan_to_curtin": [[plain, "1"]],
        "plan_to_disko": [[plain]],
        "plan_to_fai": [[plain, "secret"]],
        "plan_to_ignition": [[plain, None, True]],
        "plan_to_ironic": [[image]],
        "plan_to_kickstart": [[plain]],
        "plan_to_maas": [[plain, HARDWARE]],
        "plan_to_metal3": [[image]],
        "plan_to_providers": [[plan, "host", node_facts]],
        "plan_to_repart": [[plain, "sda"]],
        "plan_to_svg": [[plan, HARDWARE, "title"]],
        "plan_to_talos": [[plain, HARDWARE, "secret", True]],
        "plan_to_warewulf": [[plain, HARDWARE, True]],
        "plans_to_html": [[{"a": plan}]],
        "static_to_boot_problems": [[plan["schema"], HARDWARE]],
        "static_to_conflicts": [[plan["schema"], HARDWARE, HOST_FILES]],
        "static_to_foreign_lines": [[plan["schema"], HARDWARE, HOST_FILES]],
        "static_to_tools": [[plan["schema"]]],
        "static_to_unknown_names": [[plan["schema"]]],
        "tools_to_initramfs_command": [[["mdadm", "lvm"]]],
    }
    for file in sorted((ROOT / "plugins" / "filter").glob("*.py")):
        ((name, call),) = importlib.import_module(f"{PACKAGE}.plugins.filter.{file.stem}").FilterModule().filters().items()
        if name in sound:
            yield Target(name, sound[name], lambda given, call=call: call(*given), (AnsibleFilterError,), damage=_one_argument)


def _one_argument(draw: random.Random, sound: list[t.Any]) -> list[t.Any]:
    changed = draw.randrange(len(sound))
    return [_damaged(draw, part) if at == changed else part for at, part in enumerate(sound)]


def _damaged(draw: random.Random, part: t.Any) -> t.Any:
    found = mutate(draw, {"given": part})
    return found.get("given") if isinstance(found, dict) else found


# What hosts run, with what their tools say.

TOOL_OUTPUT = ["container-2.41.json", "vm-storage.json", "vm-mbr.json", "vm-stopped.json", "no-udev.json", "vm-storage-unprivileged.json"]


def _damaged_record(draw: random.Random, record: t.Any) -> t.Any:
    """Return a recorded host on which a few tools and files say something else."""
    changed = {part: dict(values) for part, values in record.items()}
    for _change in range(draw.randint(1, 3)):
        if draw.random() < 0.7:
            command = draw.choice(sorted(changed["commands"]))
            outcome = changed["commands"][command]
            changed["commands"][command] = outcome | {"stdout": mutate(draw, outcome["stdout"])}
        elif changed.get("files"):
            path = draw.choice(sorted(changed["files"]))
            changed["files"][path] = mutate(draw, changed["files"][path])
    return changed


def hosts() -> Iterator[Target]:
    """Yield what reads a host."""
    records = [data_of(f"hardware/{name}") for name in TOOL_OUTPUT]
    yield Target("read_hardware", records, lambda record: read_hardware(RecordedHost(record)), (), damage=_damaged_record, price=4)
    yield Target("read_node", records, lambda record: node.read_node(RecordedHost(record)), (), damage=_damaged_record)
    lvm_report = json.dumps({"report": [{"lv": [{"lv_name": "a", "lv_uuid": "u", "vg_name": "g", "vg_uuid": "v", "lv_size": "1"}]}]})
    table = {"label": "gpt", "id": "A", "device": "/dev/sda", "sectorsize": 512}
    table["partitions"] = [{"node": "/dev/sda1", "start": 2048, "size": 99, "type": "0FC6", "uuid": "U", "name": "n"}]
    luks = json.dumps(
        {"keyslots": {"0": {"type": "luks2"}}, "tokens": {"0": {"type": "clevis", "keyslots": ["0"], "jwe": {"protected": "e30"}}}}
    )
    texts: list[tuple[str, list[str], Callable[[str], t.Any], tuple[type[BaseException], ...]]] = [
        ("lsblk", [text_of("hardware/lsblk-O.vm.trixie.json")], lsblk.parse_rows, (ValueError,)),
        ("udev", [text_of("hardware/udevadm-info.txt")], udev.parse_rows, ()),
        ("lvm", [lvm_report], lambda text: lvm.parse_report(text, "lv", "lv_name,lv_uuid"), (ValueError,)),
        ("sfdisk", [json.dumps({"partitiontable": table})], lambda text: signatures.parse_table(text, 512), (ValueError,)),
        ("wipefs", ["# offset,uuid,label,type\n0x438,u-1,a b,ext4\n0x0,,,LVM2_member\n"], signatures.parse_signatures, ()),
        ("wipefs of several", ["# DEVICE,OFFSET,UUID,LABEL,TYPE\nsda,0x438,u-1,a b,ext4\n"], signatures.parse_several, ()),
        ("blkid", ["DEVNAME=/dev/sda\nTYPE=ext4\nUUID=1\nLABEL=a\\ b\n"], signatures.parse_probe, ()),
        ("mdadm", text_of("hardware/mdadm.txt").split("\n\n"), lambda text: (stacks.parse_array(text), stacks.parse_superblock(text)), ()),
        ("luksDump", [text_of(f"hardware/luks/luksdump-{version}.txt") for version in (1, 2)], stacks.parse_luks, ()),
        ("LUKS metadata", [luks], header.parse_header, (StepFailed,)),
        ("JWE", ["e30.e30.e30.e30.e30"], lambda text: jwe.tang_of(jwe.parse_compact(text)), (ValueError,)),
        ("mountinfo", ["29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"], mounts.parse_mounts, ()),
        ("swaps", ["Filename Type Size\n/dev/sda2 partition 1 0 -2\n"], mounts.parse_swaps, ()),
        (
            "zpool status",
            ["  pool: tank\nconfig:\n\tNAME STATE\n\ttank ONLINE\n\t  mirror-0 ONLINE\n\t    sda ONLINE\n"],
            _zpool_status,
            (),
        ),
        ("health of a disk", [json.dumps(says) for says in _SMART], _health_of, ()),
        ("zfs get", ["tank\tcompression\tlz4\n"], zfs.read_properties, ()),
        ("efibootmgr", [_BOOT_ENTRIES], firmware.read_entries, ()),
    ]
    for name, sound, read, refuses in texts:
        yield Target(name, sound, read, refuses)
    globs = [["/dev/sd*", "wwn-[0-9]*", "nvme?n1"]]
    yield Target("globs of devices", globs, lambda given: _select(records[1], given), ())


def disks() -> Iterator[Target]:
    """Yield what reads bytes of disks, and tables of mounts, containers and arrays."""
    for name, (bytes_of, read) in BYTES.items():
        yield Target(name, bytes_of, read, (), damage=damage_bytes)
    for name, (texts, read_text) in TEXTS.items():
        yield Target(name, texts, read_text, ())


_BOOT_ENTRIES = """BootOrder: 0001,0003
Boot0001* debian\tHD(1,GPT,11111111-2222-3333-4444-555555555555,0x800,0x100000)/File(\\EFI\\debian\\shimx64.efi)
Boot0003  UEFI PXEv4\tPciRoot(0x0)/Pci(0x2,0x0)/MAC(525400123456,1)/IPv4(0.0.0.0,0,0){auto_created_boot_option}
"""
_SMART: list[dict[str, t.Any]] = [
    {
        **{"smart_status": {"passed": True}, "temperature": {"current": 30}, "rotation_rate": 0},
        "ata_smart_attributes": {"table": [{"id": 177, "value": 90}, {"id": 231, "value": 80}]},
    },
    {"smart_status": {"passed": False}, "nvme_smart_health_information_log": {"percentage_used": 5}},
    {"smart_status": {"passed": True}, "scsi_percentage_used_endurance_indicator": 3},
    {"critical_warning": {"value": 0}, "temperature": 300, "percent_used": 7},
]


class _Saying:
    """A host whose tools all say the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def run(self, _command: t.Any) -> Outcome:
        return Outcome(0, self._text, "")


def _health_of(text: str) -> t.Any:
    return [health.read_health(t.cast("t.Any", _Saying(text)), "/dev/sda", transport) for transport in ("nvme", "sata")]


def _zpool_status(text: str) -> t.Any:
    return zfs.read_status(text, "tank")


def _select(record: t.Any, given: t.Any) -> t.Any:
    patterns = [str(one) for one in given] if isinstance(given, list) else [str(given)]
    return read_hardware(RecordedHost(record), select.LEFT_OUT, patterns)


_KEY_OPTIONS: dict[str, t.Any] = {
    **{
        "containers": [],
        "luks_key": "long enough to be one",
        "luks_key_files": {},
        "luks_key_file": None,
        "luks_old_key": None,
        "luks_old_key_file": None,
    },
    **{"take_away": [], "renew": [], "root": "/", "tpm2_pin": None, "hand_over": None, "take_last_key": False},
}


def _within(draw: random.Random, sound: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return options whose names are as they were, and that are lists of mappings, as Ansible has seen to."""
    damaged = {name: _damaged(draw, value) for name, value in sound.items()}
    lists = {name: value if isinstance(value, list) else [value] for name, value in damaged.items()}
    return {name: [one for one in value if isinstance(one, dict)] for name, value in lists.items()}


def schemas() -> Iterator[Target]:
    """Yield what reads a static schema, of the two kinds, and the keys of containers."""
    static = Planner(SCHEMA).plan(HARDWARE)["schema"]
    bareon = [
        {"id": {"type": "name", "value": "sda"}, "type": "disk", "size": "20000 MiB", "volumes": [{"type": "boot", "size": "300 MiB"}]}
    ]
    yield Target("static schema", [static], parse_static_schema, (SchemaMistakes,))
    yield Target("Bareon's partitions", [bareon], lambda given: read_bareon_list(given, HARDWARE), (SchemaMistakes,))
    keys = [{"containers": [{"name": "x", "device": "/dev/sda1", "unlock": [{"method": "tpm2", "pcrs": [7]}]}]}]
    yield Target("keys of containers", keys, lambda given: request_of(_KEY_OPTIONS | given), (SchemaMistakes,), damage=_within)


# What else is read on the controller.


def sources(folder: pathlib.Path) -> Iterator[Target]:
    """Yield what reads clusters, and what keeps plans and records."""
    rapi = {name: data_of(f"group/rapi/{name}.json") for name in ("info", "groups", "nodes", "instances")}
    message = {
        "nodegroups": {"u": {"name": "g", "alloc_policy": "preferred"}},
        "nodes": {
            name: {
                **{"group": "u", "offline": False, "drained": False, "total_memory": 9, "reserved_memory": 0, "free_memory": 9},
                **{"total_disk": 9, "free_disk": 9, "total_cpus": 8},
            }
            for name in ("a", "b")
        },
        "instances": {"i": {"memory": 1, "disk_space_total": 1, "vcpus": 1, "disk_template": "drbd", "nodes": ["a", "b"]}},
        "request": {"type": "allocate", "name": "n", "memory": 1, "disk_space_total": 1, "vcpus": 1, "disk_template": "drbd"},
    }
    full = "\n".join(
        [
            *("g|u|preferred|t|net", "", "a|9|0|9|9|9|8|N|u|1|t|N|1|1|1.0", "b|9|0|9|9|9|8|M|u|1|t|N|1|1|1.0", ""),
            *("i|1|1|1|running|Y|a|b|drbd|t|1|-|N", "", "htools:x", ""),
            *("|1,1,1,1,1,1|1,1,1,1,1,1;9,9,9,9,9,9|drbd,plain|4.0|32.0", "g|1,1,1,1,1,1|1,1,1,1,1,1;9,9,9,9,9,9|drbd|4.0|32.0", ""),
        ]
    )
    yield Target("ganeti text", [text_of("group/cluster.data"), full], parse_text, REFUSED)
    yield Target("iallocator", [json.dumps(message)], lambda text: requested_instances(parse_iallocator(parse_json(text))), REFUSED)
    yield Target("iallocator data", [message], lambda data: requested_instances(parse_iallocator(data)), REFUSED)
    yield Target("rapi", [rapi], parse_rapi, REFUSED)
    reading = Reading("assigned", local_disks=True, memory="balloon")
    yield Target("proxmox", [data_of("group/proxmox.json")], lambda data: parse_proxmox(data, reading), REFUSED)
    shared = libvirt.Reading(local_disks=True, shared_pools=("shared",))
    yield Target("libvirt", [data_of("group/libvirt.json")], lambda data: libvirt.parse_libvirt(data, shared), REFUSED)
    yield Target("URIs of libvirt", [{"n1": "qemu:///system"}], libvirt.read_uris, REFUSED)
    record = {
        "version": 1,
        "groups": {"a": {"over_since": None, "balancing": False, "acted": None}},
        "moved": {"i": "2026-01-01T00:00:00Z"},
    }
    record["pending"] = {"made": "2026-01-01T00:00:00Z", "purpose": "balance", "groups": ["a"], "plan": MOVES}
    journal = {"plan": MOVES, "done": [0], "jobs": {"0": "7"}, "failures": {"0": "no"}, "rounds": [ROUND]}
    kept: list[tuple[str, str, Callable[[pathlib.Path], t.Any]]] = [
        ("journal", json.dumps(journal), lambda file: read_journal(KeptFile(file, "journal"))),
        ("rates in a journal", json.dumps(journal), lambda file: measured_rates(KeptFile(file, "link_journals"))),
        ("record of group_follow", json.dumps(record), lambda file: read_record(KeptFile(file, "state_file"))),
        ("profile", (PROFILES / "general.yml").read_text(encoding="utf-8"), lambda file: Planner(read_profile(file)["schema"])),
    ]
    for number, (name, sound, read) in enumerate(kept):
        yield Target(name, [sound], lambda text, read=read, file=folder / f"kept{number}": read(_written(file, text)), REFUSED)
    yield Target(
        "query",
        [f"resources=VCPU:1&required=CUSTOM_A&member_of=in:{UUID}&limit=5&group_policy=none"],
        lambda text: parse_query(text, KNOWN),
        REFUSED,
    )
    urls = ["postgresql://u:p@h:5432/d?sslmode=require", "mysql://u@h/d?charset=utf8", f"sqlite:///{folder}/x.sqlite?timeout=5"]
    yield Target("URL of a database", urls, parse_database, REFUSED)
    yield Target(
        "size",
        ["50 GiB", "512", "2 TB"],
        lambda text: (units.parse_bytes.__wrapped__(text), units.parse_mib.__wrapped__(text)),
        (ValueError,),
    )
    told = [answers.written_error(error) for error in (InputError([Mistake("a", "b")]), NoSolution("no", {"a": 1}), Unavailable("x"))]
    yield Target("error of a worker", told, answers.read_error, (TypeError, ValueError))
    moved = [json.dumps([[["i0", "a1"]], [["a", [1, 2.5]]]])]
    yield Target("answer of a worker", moved, lambda text: answers.read(_job, text), (ValueError,))
    yield Target("usages", [[f"sqlite:///{folder}/ledger.sqlite"]], _look_up, (AnsibleError,), damage=_one_argument)


def _job() -> tuple[list[tuple[str, str]], dict[str, t.Any]]:
    """Stands for what a worker runs: what it answers is read by the type that it says."""
    raise NotImplementedError


KNOWN = known_names([], ["CUSTOM_A"], [UUID])


def _look_up(given: list[t.Any]) -> t.Any:
    lookup = usages.LookupModule(loader=DataLoader(), templar=Templar(loader=DataLoader(), variables={}))
    options = {"database": given[0], "timeout": 5.0, "tree": False}
    lookup.set_options = lambda **_given: None
    lookup.get_option = options.get
    return lookup.run(["h"], variables={})


def _written(file: pathlib.Path, text: str) -> pathlib.Path:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return file


def all_targets() -> list[Target]:
    """Return every target; what they write is in a folder that lasts as long as the process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bareon-fuzz-"))
    return [*actions(folder), *ledgers(folder), *filters(folder), *hosts(), *disks(), *schemas(), *sources(folder)]
