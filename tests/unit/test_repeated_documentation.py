# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several modules and filters document in the same words is stated once: in a fragment, or else as the copies of this table.

Fragments hold options and attributes. They cannot hold return values as long as ansible-core 2.19 is supported, nor options of options.
"""

from __future__ import annotations

import ast
import json
import typing as t
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
SHORTEST = 130
"""Characters of an entry, as JSON, from which on it has more to say than `Whether it was done.` does."""

LEDGER = ("provider", "provider_allocation", "provider_quota", "provider_reap", "provider_reconcile")
CHANGING = ("balance", "compress", "evacuate", "follow", "redistribute", "squeeze")
RECORDED = ("ansible_devices", "ironic", "lsblk", "lshw", "maas", "redfish")
BACKUP = ("path", "providers", "consumers", "audit")
FSTAB = ("fstype", "opts", "dump", "passno")
NODE = "returns/node_facts/ansible_facts/bareon_node"

COPIES: dict[str, tuple[str, ...]] = {
    "what was left in doubt": tuple(f"returns/{name}/recovered" for name in LEDGER),
    "a ledger's world": ("returns/provider/world", "returns/provider_allocation/world"),
    **{f"{key} of a backup": (f"returns/provider_backup/{key}", f"returns/provider_restore/{key}") for key in BACKUP},
    "instances that are left out": tuple(f"returns/group_{name}/left_out" for name in CHANGING),
    "notes on nodes and rules": tuple(f"returns/group_{name}/notes" for name in (*CHANGING, "capacity", "maintenance", "place")),
    "a plan of moves": ("returns/group_compress/plan", "returns/group_redistribute/plan", "returns/group_squeeze/plan"),
    "a node that is offline": ("returns/group_balance/plan/nodes/offline", "returns/group_info/nodes/offline"),
    **{f"{key} of a line of fstab": (f"options/disk_mounts/mounts/{key}", f"options/disk_tables/fstab/{key}") for key in FSTAB},
    **{f"{key} of a device": (f"{NODE}/gpus/{key}", f"{NODE}/nics/{key}") for key in ("address", "vendor", "device", "numa_node")},
    "whether a step is done": tuple(f"returns/disk_{name}/steps/done" for name in ("erase", "keys", "layout")),
    "what a run destroys": ("returns/disk_erase/destroys_digest", "returns/disk_layout/destroys_digest"),
    "the device of a container": ("returns/disk_keys/steps/device", "returns/disk_keys/containers/device"),
    "recorded hardware": tuple(f"returns/hardware_from_{name}/_value" for name in RECORDED),
}
"""The places of one text, by what it is about. A place is a section, a module, filter or fragment, and keys."""


def entries(place: str, described: t.Any) -> Iterator[tuple[str, dict[str, t.Any]]]:
    """Yield what is described, options of options and parts of return values included, each with its place."""
    for key, entry in described.items() if isinstance(described, dict) else ():
        if isinstance(entry, dict):
            yield f"{place}/{key}", entry
            yield from entries(f"{place}/{key}", entry.get("suboptions"))
            yield from entries(f"{place}/{key}", entry.get("contains"))


def documented() -> dict[str, dict[str, t.Any]]:
    found: dict[str, dict[str, t.Any]] = {}
    for file in [file for folder in ("modules", "filter", "doc_fragments") for file in sorted((PLUGINS / folder).glob("*.py"))]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
                constant = node.targets[0].id
                if constant == "RETURN":
                    found |= entries(f"returns/{file.stem}", yaml.safe_load(node.value.value))
                elif constant == "DOCUMENTATION" or (constant.isupper() and file.parent.name == "doc_fragments"):
                    name = file.stem if constant == "DOCUMENTATION" else f"{file.stem}.{constant.lower()}"
                    document = yaml.safe_load(node.value.value)
                    for section in ("options", "attributes"):
                        found |= entries(f"{section}/{name}", document.get(section))
    return found


ENTRIES = documented()


@pytest.mark.parametrize("name", COPIES)
def test_copies_have_one_text(name: str) -> None:
    original, *copies = COPIES[name]
    assert {place: ENTRIES[place] for place in copies} == dict.fromkeys(copies, ENTRIES[original])


def test_what_is_stated_twice_is_in_the_table() -> None:
    places = defaultdict(set)
    for place, entry in ENTRIES.items():
        places[json.dumps(entry, sort_keys=True)].add(place)
    known = [set(row) for row in COPIES.values()]
    repeated = [sorted(found) for text, found in places.items() if len(found) > 1 and len(text) >= SHORTEST]
    unknown = [found for found in repeated if not any(set(found) <= row for row in known)]
    assert not unknown, "state it in a fragment of plugins/doc_fragments, or add it to COPIES"


def test_what_a_fragment_refers_to_is_not_referred_to_again() -> None:
    """Ansible puts the lists of both one behind the other, so that a page would name the same module twice."""
    documents = {file.stem: documentation(file) for folder in ("modules", "filter") for file in (PLUGINS / folder).glob("*.py")}
    fragments = {file.stem: documentation(file) for file in (PLUGINS / "doc_fragments").glob("*.py")}
    again = [
        (name, entry)
        for name, document in documents.items()
        for fragment in document.get("extends_documentation_fragment", ())
        for entry in fragments[fragment.split(".")[2]].get("seealso", ())
        if entry in document.get("seealso", ())
    ]
    assert again == []


def documentation(file: Path) -> dict[str, t.Any]:
    """Return what stands in the first text `DOCUMENTATION` of a file; nothing where there is none."""
    _before, _name, text = file.read_text(encoding="utf-8").partition('DOCUMENTATION = r"""')
    return yaml.safe_load(text.partition('"""')[0]) or {}
