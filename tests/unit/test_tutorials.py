# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every tutorial, and every how-to with a console in it, runs as it is written: files are made, and commands print what it says.

A block that comes after `<!-- file: NAME -->` is a file. In a `console` block a line that begins with `$ ` is a command, and those below
it are what it prints. `...` stands for lines that are left out; all others come in this order. The commands of a page are typed into one
terminal: one that changes the folder changes it for those that follow.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("tutorials/*.md")) + sorted((ROOT / "docs").glob("how_to/*.md"))
TUTORIALS = [path for path in PAGES if "```console" in path.read_text(encoding="utf-8")]
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)


class Command(t.NamedTuple):
    """A command of a tutorial, and the lines that it prints."""

    line: str
    prints: list[str]


def commands(text: str) -> list[Command]:
    """Return what a console block runs."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), []))
        elif line.strip() not in ("", "..."):
            found[-1].prints.append(line.strip())
    return found


class Ran(t.NamedTuple):
    """What a command printed, and the folder that its shell was in at its end."""

    printed: str
    folder: pathlib.Path


def run(command: str, folder: pathlib.Path, home: pathlib.Path) -> Ran:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        # One host after the other, so that they are told in order.
        "ANSIBLE_FORKS": "1",
        "ANSIBLE_HOME": str(home / ".ansible"),
        "ANSIBLE_NOCOLOR": "1",
        # Ansible would look for one in PATH, where a version manager's stubs of other Pythons may come first.
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "COLUMNS": "200",
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PWD": str(folder),
    }
    left = home / ".folder"
    done = subprocess.run(
        ["bash", "-c", f"trap 'pwd >{shlex.quote(str(left))}' EXIT\n{command}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(done.stdout, pathlib.Path(left.read_text(encoding="utf-8").removesuffix("\n")))


def assert_prints(output: str, expected: list[str]) -> None:
    printed = iter(line.strip() for line in output.splitlines())
    for line in expected:
        assert any(line == found for found in printed), f"does not print, or not in this order:\n{line}\nbut:\n{output}"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ran, folder = 0, tmp_path
    for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
        if block["file"]:
            (tmp_path / block["file"]).parent.mkdir(exist_ok=True)
            (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "console":
            for command in commands(block["text"]):
                printed, folder = run(command.line, folder, tmp_path)
                assert_prints(printed, command.prints)
                ran += 1
    assert ran


def test_what_cannot_be_run_everywhere_is_known() -> None:
    assert [path.stem for path in PAGES if path not in TUTORIALS] == []
