# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever lacks libraries is told once, at every door: which packages of its part, and the command that installs them.

Each door is used in a Python that has nothing but what ansible-core needs, and in one that has old versions of all libraries. Each part
works in a Python that has what its own file names and nothing else.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".venv" / "collections"
REQUIREMENTS = ROOT / "requirements.txt"
CORE = ("ansible-core", "jinja2", "MarkupSafe", "PyYAML", "packaging", "resolvelib", "cryptography", "cffi", "pycparser")
OLD = "0.1.2"
BOUNDS = {Requirement(line).name: line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")}
BROUGHT_BY_CORE = {"jinja2", "pyyaml"}
PARTS = {
    part: [line for line in (ROOT / f"requirements-{part}.txt").read_text().splitlines() if line and not line.startswith(("#", "-"))]
    for part in ("disks", "ledger", "groups", "proxmox")
}
# disk_drift and disk_plan_diff compare what is there, controller_file writes text, pinned_options takes variables, disk_keys, host_answer
# and other actions have their work done on the host: they need no library.
ACTIONS = sorted(
    path.stem
    for path in (ROOT / "plugins" / "action").glob("*.py")
    if path.stem not in {"controller_file", "disk_drift", "disk_keys", "disk_plan_diff", "host_answer", "pinned_options"}
    and "HostAction" not in path.read_text(encoding="utf-8")
)
TEMPLATES = {
    "ledger_to_placement": "{{ {} | bareon.allocator.ledger_to_placement }}",
    "netbox_to_providers": "{{ [] | bareon.allocator.netbox_to_providers }}",
    "plan_to_providers": "{{ {} | bareon.allocator.plan_to_providers('host', {}) }}",
    "usages": "{{ lookup('bareon.allocator.usages') }}",
}
NO_LIBRARIES = """
import importlib, json, sys
asking = []
for name in sys.argv[1:]:
    for module in [module for module in sys.modules if ".plugin_utils." in module]:
        del sys.modules[module]
    importlib.import_module(f"ansible_collections.bareon.allocator.plugins.filter.{name}")
    libraries = sys.modules.get("ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries")
    if libraries is not None and libraries._causes:
        asking.append(name)
print(json.dumps(asking))
"""


def link_core(folder: pathlib.Path) -> None:
    """Fill a folder with links to what ansible-core and its dependencies have installed."""
    link_distributions(folder, CORE)


def link_distributions(folder: pathlib.Path, names: Iterable[str]) -> None:
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for top in {path.parts[0] for path in distribution.files or () if path.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))


def install_old(folder: pathlib.Path) -> None:
    """Put an old version of each library into a folder."""
    for name in BOUNDS.keys() - BROUGHT_BY_CORE:
        package = folder / name.replace("-", "_")
        package.mkdir()
        (package / "__init__.py").write_text(f"__version__ = {OLD!r}\n")
        metadata = folder / f"{name.replace('-', '_')}-{OLD}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {OLD}\n")


@pytest.fixture(scope="module", params=["missing", "old"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pathlib.Path]:
    """Return which case it is, and the folder of what can be imported."""
    folder = tmp_path_factory.mktemp(request.param)
    link_core(folder)
    if request.param == "old":
        install_old(folder)
    return request.param, folder


def run(folder: pathlib.Path, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run this Python with nothing but its standard library, a folder and the collection."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(COLLECTIONS)]),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_HOME": str(folder / "home"),
    }
    return subprocess.run(
        [sys.executable, "-S", *command], env=environment, cwd=folder, input=text, capture_output=True, text=True, check=False
    )


def says_what_is_needed(case: str, part: str, message: str) -> bool:
    """Tell whether a message names all libraries of a part, and ends with the command that installs them."""
    needed = [line for name, line in BOUNDS.items() if name in PARTS[part] and name not in BROUGHT_BY_CORE]
    named = [line if case == "missing" else f"{line} (it has {OLD})" for line in needed]
    sentence = f"bareon.allocator needs Python libraries that {sys.executable} does not have: {', '.join(named)}. "
    return f"{sentence}Install what is needed with: {sys.executable} -m pip install -r {ROOT}/requirements-{part}.txt" in message


def part_of(door: str) -> str:
    return {"disk": "disks", "group": "groups"}.get(door.partition("_")[0], "ledger")


def test_every_action_and_every_template_say_what_is_needed(case: tuple[str, pathlib.Path], tmp_path: pathlib.Path) -> None:
    kind, folder = case
    answers = tmp_path / "answers.json"
    doors = {name: {f"bareon.allocator.{name}": {}} for name in ACTIONS}
    doors |= {name: {"ansible.builtin.debug": {"msg": template}} for name, template in TEMPLATES.items()}
    tasks = [{"name": name, **task, "register": name, "ignore_errors": True} for name, task in doors.items()]
    kept = {"content": "{{ {" + ", ".join(f"'{name}': {name}" for name in doors) + "} | to_json }}", "dest": str(answers)}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [*tasks, {"name": "Keep the answers", "ansible.builtin.copy": kept}]}
    playbook = tmp_path / "doors.yml"
    playbook.write_text(yaml.safe_dump([play]))
    local = ("--inventory", "localhost,", "--connection", "local", "--extra-vars", f"ansible_python_interpreter={sys.executable}")
    done = run(folder, "-m", "ansible", "playbook", *local, str(playbook))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    told = json.loads(answers.read_text())
    assert sorted(told) == sorted(doors)
    silent = {
        name: answer for name, answer in told.items() if not answer["failed"] or not says_what_is_needed(kind, part_of(name), answer["msg"])
    }
    assert silent == {}
    assert all(set(answer) <= {"changed", "failed", "msg", "exception"} for answer in told.values())


def test_filters_that_need_libraries_are_those_that_say_so(case: tuple[str, pathlib.Path]) -> None:
    filters = sorted(path.stem for path in (ROOT / "plugins" / "filter").glob("*.py"))
    done = run(case[1], "-c", NO_LIBRARIES, *filters)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["ledger_to_placement", "netbox_to_providers", "plan_to_providers"]


def test_the_iallocator_program_says_what_is_needed(case: tuple[str, pathlib.Path]) -> None:
    kind, folder = case
    done = run(folder, str(ROOT / "playbooks" / "files" / "bareon-iallocator"), "-", text="{}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: bareon.allocator needs")
    assert done.stderr.count("\n") == 1
    assert says_what_is_needed(kind, "groups", done.stderr)


def test_every_requirement_belongs_to_a_part() -> None:
    assert set(BOUNDS) == {name for names in PARTS.values() for name in names}


TASKS = {
    "disks": {
        "bareon.allocator.disk_plan": {
            "schema": [{"id": "root", "type": "partition", "min_size": 1024}],
            "hardware": {"ram": 1024, "disks": [{"id": "one", "type": "ssd", "size": 65536}]},
        }
    },
    "ledger": {
        "bareon.allocator.provider": {
            "database": "sqlite:///{{ playbook_dir }}/ledger.db",
            "name": "host1",
            "inventories": {"VCPU": {"total": 8}},
        }
    },
    "groups": {
        "bareon.allocator.group_info": {
            "cluster": {
                "nodes": [{"name": name, "total_memory": 4096, "total_disk": 65536, "total_cpus": 4} for name in ("node1", "node2")],
                "instances": [{"name": "web", "memory": 1024, "disk": 1024, "vcpus": 1, "primary": "node1"}],
            }
        }
    },
}


@pytest.mark.parametrize("part", TASKS)
def test_a_part_works_with_its_own_libraries_alone(part: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "libraries"
    folder.mkdir()
    link_distributions(folder, closure([*CORE, *PARTS[part]]))
    playbook = tmp_path / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [{"name": "One task", **TASKS[part]}]}]))
    local = ("--inventory", "localhost,", "--connection", "local", "--extra-vars", f"ansible_python_interpreter={sys.executable}")
    done = run(folder, "-m", "ansible", "playbook", *local, str(playbook))
    assert done.returncode == 0, done.stdout + done.stderr


def closure(names: list[str]) -> set[str]:
    """Return distributions with all that they require, as they are installed here."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            needed = map(Requirement, importlib.metadata.requires(name) or ())
            waiting += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found
