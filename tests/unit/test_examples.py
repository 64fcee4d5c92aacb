# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every EXAMPLES block really runs, on this machine, in a folder of its own.

`examples/NAME.yml` has what the block of module, filter or lookup NAME leaves to its reader: variables, and the keys

- `example_hosts`: hosts that it speaks of, beside localhost, with their variables;
- `example_setup`: tasks that come before it, for what it takes as given;
- `example_replace`: texts in it that would lead out of the folder, and what stands in for them, where `$folder` is the
  folder of the run and `$rapi` the URL of a server that replays answers of Ganeti's remote API.

Modules in `examples/library` stand in for what cannot run everywhere.
Tasks find the folder as `{{ example_folder }}`, and the data of tests as `{{ example_data }}`.
"""

from __future__ import annotations

import ast
import os
import pathlib
import re
import string
import subprocess
import sys
import typing as t
from collections.abc import Iterator, Mapping

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.group.replay_server import recorded_answers, serving

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
LEADS_AWAY = re.compile(r"sqlite:///\S+|(?:postgresql|mariadb|https?)://\S+|dest: [/~]\S+")
RECAP = re.compile(r"^localhost\s.*\bok=(\d+).*\bfailed=0\b.*\bskipped=0\b.*\brescued=0\b.*\bignored=0\b", re.MULTILINE)


def documented(folder: str) -> list[pathlib.Path]:
    """Return the files of one kind of plugin that carry documentation."""
    found = [*(ROOT / "plugins" / folder).glob("*.py"), *(ROOT / "plugins" / folder).glob("*.yml")]
    return sorted(path for path in found if "EXAMPLES" in path.read_text(encoding="utf-8"))


def examples(path: pathlib.Path) -> str:
    """Return the text of an EXAMPLES block."""
    if path.suffix == ".yml":
        return yaml.safe_load(path.read_text(encoding="utf-8"))["EXAMPLES"]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(
        ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXAMPLES"
    )


def replaced(text: str, replacements: Mapping[str, str], places: Mapping[str, str]) -> str:
    """Return the block with the stand-ins; nothing in it may write or ask outside of `places` then."""
    for old, new in replacements.items():
        assert old in text, f"the block does not have {old}"
        text = text.replace(old, string.Template(new).substitute(places))
    outside = [found for found in LEADS_AWAY.findall(text) if not any(place in found for place in places.values())]
    assert not outside
    return text


def play(name: str, tasks: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return a play that runs tasks on localhost."""
    return {"name": name, "hosts": "localhost", "gather_facts": False, "tasks": tasks}


def playbook(setup: list[dict[str, t.Any]], block: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Return a playbook that runs the setup and then the block: its plays as they are, its tasks on localhost."""
    whole = all("hosts" in entry for entry in block)
    return [play("Set up", setup), *(block if whole else [play("Run the examples", block)])]


def inventory(folder: pathlib.Path, hosts: Mapping[str, t.Any], variables: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return an inventory of localhost and `hosts`, all of them this machine with the rights of the caller."""
    local = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": False,
        "example_folder": str(folder),
        "example_data": str(HERE / "data"),
    }
    return {"all": {"hosts": {"localhost": {}, **{name: own or {} for name, own in hosts.items()}}, "vars": {**variables, **local}}}


@pytest.fixture(scope="session")
def rapi() -> Iterator[str]:
    """Yield the URL of a server that answers as a Ganeti cluster did."""
    with serving(recorded_answers()) as url:
        yield url


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=f"{folder}/{path.stem}") for folder in ("modules", "filter", "lookup") for path in documented(folder)]
)
def test_examples_run(path: pathlib.Path, tmp_path: pathlib.Path, rapi: str) -> None:
    own = HERE / "examples" / f"{path.stem}.yml"
    given = yaml.safe_load(own.read_text(encoding="utf-8")) if own.is_file() else {}
    hosts, setup, replacements = given.pop("example_hosts", {}), given.pop("example_setup", []), given.pop("example_replace", {})
    block = yaml.safe_load(replaced(examples(path), replacements, {"folder": str(tmp_path), "rapi": rapi}))
    files = {"inventory.yml": inventory(tmp_path, hosts, given), "play.yml": playbook(setup, block)}
    for name, content in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_REMOTE_TMP": str(tmp_path / "remote"),
        "ANSIBLE_LIBRARY": str(HERE / "examples" / "library"),
        "ANSIBLE_NOCOLOR": "1",
        "BAREON_DATABASE": f"sqlite:///{tmp_path}/ledger.sqlite",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    recap = RECAP.search(done.stdout) if done.returncode == 0 else None
    assert recap, done.stdout + done.stderr
    if all("hosts" not in entry for entry in block):
        assert int(recap[1]) == len(setup) + len(block), "every task has run"
