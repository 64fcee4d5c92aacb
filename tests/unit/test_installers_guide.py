# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the guide to installers shows is what the filters write, and the filters that it names are there."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.drift.report import drift
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer import curtin, disko, fai, ignition, kickstart, repart
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.installer.write import Target, write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan

Plain = dict[str, t.Any]

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "installers.md").read_text(encoding="utf-8")
HARDWARE = {
    "ram": 32768,
    "firmware": "uefi",
    "disks": [{"id": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "type": "ssd", "size": 457862}],
}
SCREEN = 60
WRITTEN: dict[str, tuple[int, Target, Plain]] = {
    "kickstart": (0, kickstart.TARGET, {"version": "RHEL9", "passphrase": None}),
    "fai": (0, fai.TARGET, {"passphrase": None}),
    "disko": (0, disko.TARGET, {"password_file": None}),
    "curtin": (1, curtin.TARGET, {"version": "1", "key_file": None}),
    "ignition": (1, ignition.TARGET, {"key_file": None, "tpm2": False}),
    "butane": (1, ignition.BUTANE_TARGET, {"variant": "fcos", "key_file": None, "tpm2": False}),
    "repart": (1, repart.TARGET, {"disk": None, "encrypt": "tpm2"}),
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)\n```$", TEXT, re.MULTILINE | re.DOTALL)


def read(language: str, text: str) -> t.Any:
    """Return what a block stands for: data where the target reads data, else the text."""
    if language == "ignition":
        return json.loads(text)
    return yaml.safe_load(text) if language in {"curtin", "butane"} else text.strip()


@pytest.mark.parametrize("language", WRITTEN)
def test_the_guide_shows_what_is_written(language: str) -> None:
    schema, target, options = WRITTEN[language]
    plan = make_plan(yaml.safe_load(blocks("yaml")[schema]), HARDWARE)
    made = write_plan(target, plan, None, lossy=False, **options)
    assert all(warning.endswith("gives partitions UUIDs of its own, not those of the plan") for warning in made.warnings)
    value = made.value["010-data.conf"] if language == "repart" else made.value
    (shown,) = blocks(language)
    assert read(language, shown) == (value.strip() if isinstance(value, str) else value)


def test_the_table_of_drift() -> None:
    plan = make_plan(yaml.safe_load(blocks("yaml")[1]), HARDWARE)
    assert drift(["node1"], {"node1": plan}.get, {"node1": {"disks": []}}.get).to_plain()["summary"] == blocks("drift")[0]


def test_every_filter_is_in_a_table_and_each_door_fits_a_screen() -> None:
    there = {path.stem for path in (ROOT / "plugins" / "filter").glob("*.py")}
    outward = {name.removeprefix("plan_to_") for name in there if name.startswith("plan_to_")} - {"svg", "providers"}
    inward = {name.removeprefix("hardware_from_") for name in there if name.startswith("hardware_from_")}
    rows = [line for line in TEXT.splitlines() if line.startswith("|")]
    named = {name for line in rows for name in re.findall(r"`([a-z_]+)`", line)}
    assert outward | inward <= named
    doors = [part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:] if not part.startswith("disko")]
    assert all(len(part.split("\n# ")[0].splitlines()) <= SCREEN for part in doors)
