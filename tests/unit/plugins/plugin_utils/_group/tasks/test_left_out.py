# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action that plans moves says how many instances it leaves out by which reason; the modules document that in the same words."""

from __future__ import annotations

import pathlib

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute

MODULES = pathlib.Path(__file__).resolve().parents[6] / "plugins" / "modules"
RUNS = {
    "balance": lambda loaded: run_balance(loaded, {"workers": 1}, solve_each),
    "redistribute": lambda loaded: run_redistribute(loaded, {}),
    "redistribute by load": lambda loaded: run_redistribute(loaded, {"by": "load"}),
    "compress": lambda loaded: run_compress(loaded, {}),
    "squeeze": lambda loaded: run_squeeze(loaded, {}),
}


@pytest.mark.parametrize("action", RUNS)
def test_answers_and_summaries_count_who_is_left_out(bench, action):
    nodes = [bench.node("a"), bench.node("b", unreachable=True)]
    instances = [
        bench.instance("i", "a", disk_template=DiskTemplate.PLAIN),
        bench.instance("j", "b", disk_template=DiskTemplate.EXT),
        bench.instance("k", "a", disk_template=DiskTemplate.EXT, auto_balance=False),
    ]
    answer = RUNS[action](Loaded(bench.cluster(nodes, instances), {}))
    expected = {"local_disks": 1, "unreachable": 1} | ({"auto_balance": 1} if action == "balance" else {})
    assert answer["left_out"] == expected
    last = answer["summary"].splitlines()[-1]
    assert all(f"{count} {reason}" in last for reason, count in expected.items())


def test_modules_document_it_in_the_same_words():
    texts = {path.stem: path.read_text() for path in MODULES.glob("group_*.py")}
    returned = {
        name: yaml.safe_load(text.split('RETURN = r"""')[1].split('"""')[0]) for name, text in texts.items() if "RETURN = r" in text
    }
    found = {name: values["left_out"] for name, values in returned.items() if values and values.get("left_out", {}).get("type") == "dict"}
    assert len(found) == 6
    assert len({str(text) for text in found.values()}) == 1
