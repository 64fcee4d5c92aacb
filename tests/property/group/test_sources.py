# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sources under damaged input: a cluster or one message with all mistakes, never anything else; and text is written as it was read."""

from __future__ import annotations

import copy
import json
import math
import pathlib

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import (
    parse_iallocator,
    requested_instances,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report, summary
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = generate(nodes=4, per_node=2, template="mixed", extags=True, loctags=True, odd=True).text()
REQUEST = {
    "type": "allocate",
    "name": "new",
    "memory": 1,
    "vcpus": 1,
    "disk_space_total": 1,
    "disks": [{"size": 1}],
    "disk_template": "plain",
}
MESSAGE = json.loads(generate(nodes=3, per_node=2, extags=True).ialloc(REQUEST))
ODD_MESSAGE = json.loads(generate(nodes=7, per_node=3, template="mixed", offline=1, extags=True, loctags=True, odd=True).ialloc(REQUEST))
DATA = pathlib.Path(__file__).resolve().parents[2] / "unit" / "data" / "group"
RAPI = {name: json.loads((DATA / "rapi" / f"{name}.json").read_text()) for name in ("info", "groups", "nodes", "instances")}
PROXMOX = json.loads((DATA / "proxmox.json").read_text())
INLINE = {
    "groups": [{"name": "a", "ipolicy": {"minmax": [{"min": {"memory-size": 1}, "max": {"cpu-count": 4}}]}}],
    "nodes": [
        {"name": "n1", "group": "a", "total_memory": "4 GiB", "total_cpus": 4, "storage": [{"pool": "lvm", "total": "1 TiB"}]},
        {"name": "n2", "group": "a", "total_memory": 4096, "total_cpus": 4, "total_disk": 5000, "tags": ["x"]},
    ],
    "instances": [{"name": "i", "memory": 100, "disk": "1 GiB", "vcpus": 1, "primary": "n1", "secondary": "n2", "load": {"cpu": 0.5}}],
    "tags": ["htools:iextags:s"],
}
SCRAPS = st.sampled_from(
    ["", "\n", "|", ",", ";", "-1", "?", "Y", "1e999", "nan", "9" * 30, "é", "\x00", "node-0001.example.com", "drbd", "0"]
)
VALUES = st.sampled_from(
    [None, -1, 0, 1.5, float("nan"), float("inf"), 2**70, "", "x", "5 GiB", "-3", True, [], {}, [1], ["a"], {"a": 1}, [[]]]
)
often = settings(max_examples=examples(200), deadline=None)


@st.composite
def damaged_text(draw):
    text = TEXT
    for _wound in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.sampled_from([0, 1, 2, 10, 200, len(text)]))
        text = text[:start] + draw(st.one_of(SCRAPS, st.text(max_size=5))) + text[end:]
    return text


@st.composite
def damaged(draw, whole):
    """Replace or remove some values anywhere in nested data."""
    data = json.loads(json.dumps(whole))
    for _wound in range(draw(st.integers(1, 3))):
        spot, key = data, None
        parent = None
        while isinstance(spot, (dict, list)) and spot and (key is None or draw(st.integers(0, 3))):
            parent = spot
            key = draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else list(range(len(spot)))))
            spot = spot[key]
        if parent is None:
            continue
        if draw(st.booleans()) and isinstance(parent, dict):
            del parent[key]
        else:
            parent[key] = copy.deepcopy(draw(VALUES))
    return data


def check_usable(cluster):
    """What was accepted must also be usable."""
    told = report(cluster, ScoreMode.CAPACITY)
    assert math.isfinite(told["score"])
    assert summary(told)


def check_message(error):
    assert error.mistakes
    assert all(mistake.says for mistake in error.mistakes)
    assert "Traceback" not in str(error)


@often
@given(damaged_text())
def test_damaged_text_is_understood_or_refused(text):
    try:
        cluster = parse_text(text)
    except InputError as error:
        check_message(error)
        return
    check_usable(cluster)
    assert parse_text(write_text(cluster)).instances == cluster.instances


@often
@given(st.text())
def test_any_text_is_understood_or_refused(text):
    try:
        parse_text(text)
    except InputError as error:
        check_message(error)


@often
@given(damaged(MESSAGE))
def test_damaged_messages_are_understood_or_refused(data):
    try:
        message = parse_iallocator(data)
        requested_instances(message)
    except InputError as error:
        check_message(error)
        return
    check_usable(message.cluster)
