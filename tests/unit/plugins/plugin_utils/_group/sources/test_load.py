# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one door to all sources, on files and directories."""

from __future__ import annotations

import json
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.load import load_cluster

TESTS = pathlib.Path(__file__).resolve().parents[5]
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

DATA = TESTS / "unit" / "data" / "group"
GENERATED = generate(nodes=3, per_node=2)


def load(kind, path):
    return load_cluster({"cluster": None, "source": {"type": kind, "path": str(path), "url": None}}, str)


def test_text_and_message_files(tmp_path):
    (tmp_path / "cluster.data").write_text(GENERATED.text())
    (tmp_path / "message.json").write_text(GENERATED.ialloc({"type": "relocate"}))
    text, message = load("ganeti_text", tmp_path / "cluster.data"), load("iallocator", tmp_path / "message.json")
    assert text.cluster.instances == message.cluster.instances
    assert (text.request, message.request) == ({}, {"type": "relocate"})


def test_directory_of_answers():
    assert len(load("ganeti_rapi", DATA / "rapi").cluster.nodes) == 5


def test_proxmox_as_one_file_or_as_a_tree(tmp_path):
    for name, document in json.loads((DATA / "proxmox.json").read_text()).items():
        path = tmp_path / f"{name[1:]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    assert load("proxmox", tmp_path) == load("proxmox", DATA / "proxmox.json")


def test_inline_needs_no_file():
    cluster = {"nodes": [{"name": "n", "total_memory": 1, "total_cpus": 1}]}
    assert load_cluster({"cluster": cluster}, str).cluster.nodes[0].name == "n"


@pytest.mark.parametrize(
    ("kind", "content", "says"),
    [
        ("ganeti_text", None, "cannot read"),
        ("ganeti_text", b"\xff\xfe", "is not UTF-8 text"),
        ("iallocator", b"{", "is not JSON"),
        ("proxmox", b"[]", "must hold a mapping"),
    ],
)
def test_files_that_cannot_be_read(kind, content, says, tmp_path):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        load(kind, path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_paths_that_no_file_has(path):
    with pytest.raises(InputError, match="cannot be the path of a file"):
        load("iallocator", path)


def test_options_without_a_value_name_no_cluster():
    with pytest.raises(InputError, match="cluster: is empty"):
        load_cluster({"cluster": None, "source": None}, str)


def test_every_broken_file_of_a_directory_is_told(tmp_path):
    (tmp_path / "info.json").write_text("{")
    (tmp_path / "nodes.json").write_text("]")
    with pytest.raises(InputError) as caught:
        load("ganeti_rapi", tmp_path)
    assert len(caught.value.mistakes) == 2


def test_empty_directory(tmp_path):
    with pytest.raises(InputError, match="no JSON file"):
        load("proxmox", tmp_path)


def test_a_file_is_not_asked_at_an_address():
    source = {"type": "ganeti_text", "path": None, "url": "https://pve.example.com"}
    with pytest.raises(InputError, match="source.url: does not go with a source of type ganeti_text"):
        load_cluster({"cluster": None, "source": source}, str)
