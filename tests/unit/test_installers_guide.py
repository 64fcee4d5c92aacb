# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guide to installers: its playbooks run as they are written, and write what it shows; its tables name the filters that are there.

A block that comes after `<!-- file: NAME -->` is a file; one run of ansible-playbook takes all that are playbooks.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.report import drift

Plain = dict[str, t.Any]

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "installers.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^<!-- file: (\S+) -->\n```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
SCREEN = 60
SHOWN = {
    "kickstart": "web1.ks",
    "fai": "web1.fai",
    "curtin": "store1-curtin.yml",
    "ignition": "store1.ign",
    "butane": "store1.bu",
    "repart": "repart.d/010-data.conf",
    "disko": "store1.nix",
    "maas": "web1-maas.json",
    "talos": "image1-talos.yml",
    "warewulf": "store1-warewulf.yml",
    "ceph": "osd1-osds.yml",
    "ironic": "image1-ironic.json",
    "metal3": "image1-metal3.yml",
}
"""The file that each block shows, by its language."""
YAML = {"curtin", "butane", "ceph", "metal3", "talos", "warewulf"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)\n```$", TEXT, re.MULTILINE | re.DOTALL)


def read(language: str, text: str) -> t.Any:
    """Return what a file stands for: data where the target reads data, else the text."""
    if language in {"ignition", "ironic", "maas"}:
        return json.loads(text)
    return list(yaml.safe_load_all(text)) if language in YAML else text.strip()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Run all playbooks of the guide in a folder of their own, that which plans first."""
    folder = tmp_path_factory.mktemp("guide")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_HOME": str(folder / ".ansible"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    names = sorted(FILES.keys() - {"hosts.yml", "plan.yml"})
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "--inventory", "hosts.yml", "plan.yml", *names],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return folder


@pytest.mark.parametrize("language", SHOWN)
def test_the_playbooks_of_the_guide_write_what_it_shows(written: pathlib.Path, language: str) -> None:
    (shown,) = blocks(language)
    assert read(language, shown) == read(language, (written / SHOWN[language]).read_text(encoding="utf-8"))


def test_each_target_has_a_playbook() -> None:
    filters = {path.stem for path in (ROOT / "plugins" / "filter").glob("plan_to_*.py")} - {"plan_to_svg", "plan_to_providers"}
    assert filters == {f"plan_to_{name}" for name in SHOWN}
    for name in SHOWN:
        assert f"bareon.allocator.plan_to_{name}" in FILES[f"{name}.yml"]


def test_the_table_of_drift() -> None:
    disk = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
    plan = {"schema": {}, "disks": [{"disk_id": disk, "size": 457862}]}
    assert drift(["node1"], {"node1": plan}.get, {"node1": {"disks": []}}.get).to_plain()["summary"] == blocks("drift")[0]


def test_every_filter_is_in_a_table_and_each_door_fits_a_screen() -> None:
    there = {path.stem for path in (ROOT / "plugins" / "filter").glob("*.py")}
    outward = {name.removeprefix("plan_to_") for name in there if name.startswith("plan_to_")} - {"svg", "providers"}
    inward = {name.removeprefix("hardware_from_") for name in there if name.startswith("hardware_from_")}
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    named = {name for line in rows for name in re.findall(r"`([a-z0-9_]+)`", line)}
    assert outward | inward <= named
    doors = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    assert all(len(part.split("\n# ")[0].splitlines()) <= SCREEN for part in doors)
