# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program bareon-json gives what the action gives, and nothing but JSON on standard output, whatever its input is.

The caller with a map of texts keeps to the protocol of Terraform's data source `external` as its provider documents it: one JSON object of
strings in and out, standard output and exit code 0 for a result, anything else an error with the text of standard error.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".venv/collections/ansible_collections/bareon/allocator/playbooks/files/bareon-json"
NODES = [{"name": name, "total_memory": memory, "total_disk": 2**20, "total_cpus": 8} for name, memory in (("a", 65536), ("b", 8192))]
GUEST = {"name": "web", "memory": 4096, "disk": 10240, "vcpus": 1, "disk_template": "ext"}
DISK = {"id": "one", "path": "port", "dev": "/dev/sda", "type": "ssd", "size": 400000}


def run(*words: str, text: str, folder: pathlib.Path, home: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        input=text,
        cwd=folder,
        env=environment | {"ANSIBLE_HOME": home or str(folder / ".ansible")},
        capture_output=True,
        text=True,
        check=False,
    )


def result_of(*words: str, options: t.Any, folder: pathlib.Path) -> dict[str, t.Any]:
    done = run(*words, text=json.dumps(options), folder=folder)
    assert done.returncode == 0, done.stderr
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


def external(action: str, query: dict[str, str], folder: pathlib.Path) -> dict[str, str]:
    """Return what the data source `external` would hold. Raises RuntimeError where Terraform would stop."""
    done = run(action, "--flat", text=json.dumps(query), folder=folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    result = json.loads(done.stdout)
    if not isinstance(result, dict) or not all(isinstance(value, str) for value in result.values()):
        raise RuntimeError("the result is no map of strings")
    return t.cast("dict[str, str]", result)


def test_an_action_of_each_part_answers(tmp_path: pathlib.Path) -> None:
    placed = result_of("group_place", options={"cluster": {"nodes": NODES}, "instances": [GUEST]}, folder=tmp_path)
    assert placed["solutions"][0]["groups"][0]["nodes"] == ["a"]
    hardware = {"ram": 4096, "firmware": "bios", "disks": [DISK]}
    schema = [{"id": "root", "type": "partition", "min_size": 1024, "fs_type": "ext4"}]
    planned = result_of("disk_plan", options={"schema": schema, "hardware": hardware}, folder=tmp_path)
    assert [space["space_id"] for space in planned["plan"]["disks"][0]["spaces"]] == ["root"]
    ledger = f"sqlite:///{tmp_path}/ledger.sqlite"
    host = {"database": ledger, "name": "host", "inventories": {"VCPU": 4}}
    assert result_of("provider", options=host, folder=tmp_path)["changed"]
    assert not result_of("provider", options=host, folder=tmp_path)["changed"]
    assert [one["name"] for one in result_of("provider_info", options={"database": ledger}, folder=tmp_path)["providers"]] == ["host"]


def test_a_relative_path_begins_in_the_working_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cluster.data").write_text((ROOT / "playbooks/files/cluster.data").read_text(encoding="utf-8"), encoding="utf-8")
    assert result_of("group_info", options={"source": {"type": "ganeti_text", "path": "cluster.data"}}, folder=tmp_path)["groups"]


def test_check_changes_nothing_and_diff_shows_what_would(tmp_path: pathlib.Path) -> None:
    host = {"database": f"sqlite:///{tmp_path}/ledger.sqlite", "name": "host", "inventories": {"VCPU": 4}}
    would = result_of("provider", "--check", options=host, folder=tmp_path)
    assert would["changed"]
    assert "diff" not in would
    assert result_of("provider", "--check", "--diff", options=host, folder=tmp_path)["diff"]
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "text", "place"),
    [
        (["group_plce"], "{}", "ACTION"),
        (["disk_layout"], "{}", "ACTION"),
        (["pinned_options"], "{}", "ACTION"),
        (["../group_place"], "{}", "ACTION"),
        (["group_place"], "{", "standard input"),
        (["group_place"], "[1]", "standard input"),
        (["group_place"], "", "cluster"),
        (["group_info"], '{"clster": {}}', "clster"),
        (["group_info"], '{"cluster": {"nodes": [{"name": "a b"}]}}', "cluster.nodes[0].name"),
        (["group_info", "--flat"], '{"cluster": {}}', "cluster"),
        (["group_info", "--flat"], '{"cluster": "{"}', "cluster"),
        (["disk_plan"], '{"profile": "general"}', "hardware"),
        (["disk_plan"], '{"profile": "general", "hosts": ["a"]}', "hosts"),
        (["disk_plan"], "[" * 200_000, "standard input"),
        (["disk_plan"], f'{{"schema": {"[" * 3000 + "]" * 3000}}}', "more deeply than can be read"),
        (["group_info"], f'{{"cluster": {{"nodes": {"[" * 3000 + "]" * 3000}}}}}', "more deeply than can be read"),
        (["disk_plan", "--flat"], json.dumps({"schema": "[" * 100_000}), "schema"),
    ],
)
def test_a_mistake_is_one_message_and_exits_with_1(words: list[str], text: str, place: str, tmp_path: pathlib.Path) -> None:
    done = run(*words, text=text, folder=tmp_path)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["failed"] in (True, "true")
    assert place in result["msg"]
    assert "exception" not in result
    assert done.stderr == f"Error: {result['msg']}\n"


def test_bytes_that_are_no_text_are_a_mistake(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "group_info"], input=b'{"a": "\xff"}', cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"]


def test_a_caller_that_speaks_in_texts(tmp_path: pathlib.Path) -> None:
    query = {"cluster": json.dumps({"nodes": NODES}), "instances": json.dumps([GUEST]), "strategy": "balanced"}
    result = external("group_place", query, tmp_path)
    assert json.loads(result["solutions"])[0]["groups"][0]["nodes"] == ["a"]
    assert result["summary"]
    with pytest.raises(RuntimeError, match="strategy"):
        external("group_place", {**query, "strategy": "best"}, tmp_path)


def test_a_home_that_cannot_be_written_is_a_result_that_says_what_names_another(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    done = run("group_info", text=json.dumps({"cluster": {"nodes": NODES}}), folder=tmp_path, home=str(tmp_path / "file" / "home"))
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["failed"]
    assert "ANSIBLE_HOME" in result["msg"]


def test_without_a_standard_input_no_options_are_given(tmp_path: pathlib.Path) -> None:
    closed = ["sh", "-c", '"$0" "$@" <&-', sys.executable, str(PROGRAM), "disk_plan"]
    done = subprocess.run(closed, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "required" in json.loads(done.stdout)["msg"]
