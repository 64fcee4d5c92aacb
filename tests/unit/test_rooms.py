# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of the house, read from the source: who may import whom, and what stands where."""

from __future__ import annotations

import ast
import collections
import graphlib
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house.imports import (
    COLLECTION,
    PLUGINS,
    ROOMS,
    ROOT,
    Import,
    floor_of,
    imports,
    imports_of,
    room_of,
    source_files,
)

IMPORTS = imports()
DOORS = ("action", "filter", "inventory", "lookup", "modules")
# Packages of `module_utils` that both sides share.
SHARED = ("_data", "_storage", "_schema")
# Which rooms a room may import.
NEIGHBOURS = {
    "module_utils": (),
    "common": (),
    "disk": ("common",),
    "provider": ("common",),
    "group": ("common",),
    "bridge": ("common", "disk", "provider", "group"),
}
# A door turns arguments into one call and its answer into a result; who needs more lines has a task to hand on.
DOOR_LINES = 130
# How a test could change where Python looks.
GROWING = {"insert", "append", "extend"}


def place_of(path: Path) -> tuple[str, ...]:
    return path.relative_to(PLUGINS).with_suffix("").parts


def short(place: tuple[str, ...]) -> str:
    return "/".join(place).removeprefix("plugin_utils/_")


def told(broken: Iterable[object]) -> str:
    return "\n  ".join(["", *(str(one) for one in broken)])


def inner_arrows() -> list[tuple[tuple[str, ...], tuple[str, ...], Import]]:
    """Return all imports of one file of the project by another."""
    return [(place_of(one.source), one.target, one) for one in IMPORTS if one.target is not None]


def test_every_room_is_known() -> None:
    assert {room_of(place) for place in source_files()} == {None, *ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_the_packages_of_a_room_form_a_ladder(room: str) -> None:
    """There is an order of the packages in which every import points down."""
    below: dict[str, set[str]] = collections.defaultdict(set)
    why: dict[tuple[str, str], list[Import]] = collections.defaultdict(list)
    for source, target, line in inner_arrows():
        if room_of(source) == room_of(target) == room and floor_of(source) != floor_of(target):
            below[floor_of(source)].add(floor_of(target))
            why[floor_of(source), floor_of(target)].append(line)
    try:
        list(graphlib.TopologicalSorter(below).static_order())
    except graphlib.CycleError as error:
        ring = error.args[1][::-1]
        arrows = [line for upper, lower in zip(ring, ring[1:]) for line in why[upper, lower]]
        pytest.fail(f"{room}: {' -> '.join(ring)} is a circle; move a definition down until one of these is gone:{told(arrows)}")


def test_no_files_import_each_other_in_a_circle() -> None:
    below: dict[str, set[str]] = collections.defaultdict(set)
    for source, target, _line in inner_arrows():
        below[short(source)].add(short(target))
    try:
        list(graphlib.TopologicalSorter(below).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1][::-1])}")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    """Disks, providers and groups know nothing of each other; only `bridge` joins them."""
    broken = []
    for source, target, line in inner_arrows():
        shared = target[0] == "module_utils" and target[1] in SHARED and room != "module_utils"
        if room_of(source) == room and room_of(target) not in {room, *NEIGHBOURS[room]} and not shared:
            broken.append(line)
    allowed = ", ".join([*NEIGHBOURS[room], *(f"module_utils/{name}" for name in SHARED if room != "module_utils")]) or "no other room"
    assert not broken, f"{room} may import {allowed}, but:{told(broken)}"


def test_modules_import_from_the_house_only_what_goes_to_the_host() -> None:
    broken = [line for source, target, line in inner_arrows() if source[0] == "modules" and target[0] != "module_utils"]
    assert not broken, f"modules run on hosts, where only module_utils is; but:{told(broken)}"


def test_imports_of_the_house_lead_to_files() -> None:
    """What was moved is named where it is now, in tests as well."""
    files = source_files()
    inside = [path for path in (ROOT / "tests").rglob("*.py") if f"{COLLECTION}plugins." in path.read_text(encoding="utf-8")]
    own = [one for path in inside for one in imports_of(path.relative_to(ROOT).parts, path, files) if one.name.startswith(COLLECTION)]
    lost = [one for one in IMPORTS if one.name.startswith(".")] + [one for one in own if one.name.startswith(f"{COLLECTION}plugins.")]
    broken = [one for one in lost if one.target is None]
    assert not broken, f"there is no such file:{told(broken)}"


def test_no_door_imports_a_door() -> None:
    broken = [line for source, target, line in inner_arrows() if target[0] in DOORS]
    assert not broken, f"what two doors share belongs into a room, but:{told(broken)}"


def test_what_goes_to_hosts_imports_the_standard_library_only() -> None:
    broken = []
    for line in IMPORTS:
        library = line.name.split(".")[0]
        mine = place_of(line.source)[0]
        allowed = mine == "modules" and line.name == "ansible.module_utils.basic"
        if mine in {"module_utils", "modules"} and line.target is None and library not in sys.stdlib_module_names and not allowed:
            broken.append(line)
    assert not broken, f"hosts have Python and nothing else, but:{told(broken)}"


@pytest.mark.parametrize("folder", DOORS)
def test_doors_are_thin(folder: str) -> None:
    broken = []
    for path in sorted((PLUGINS / folder).glob("*.py")):
        lines = code_lines(path)
        if lines > DOOR_LINES:
            broken.append(f"{path.relative_to(ROOT)}: {lines} lines of code")
    assert not broken, f"a door has at most {DOOR_LINES} lines beside its documentation; hand the rest to a room:{told(broken)}"


def code_lines(path: Path) -> int:
    """Return how many lines hold statements: not comments, not empty ones, not docstrings, not the documentation of a plugin."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and not _is_text(node):
            end = node.body[0].lineno - 1 if getattr(node, "body", None) else node.end_lineno
            lines.update(range(node.lineno, (end or node.lineno) + 1))
    return len(lines)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str) and "\n" in value.value


def test_no_file_carries_the_name_of_its_folder() -> None:
    broken = []
    for place, path in source_files().items():
        folders = () if place[0] in DOORS else place[:-1]
        broken += [
            f"{path.relative_to(ROOT)} repeats {folder}/" for folder in folders if place[-1].startswith(f"{folder.removeprefix('_')}_")
        ]
    assert not broken, f"the folder says it already:{told(broken)}"


def packages() -> list[Path]:
    """Return the folders that hold our Python; `plugin_utils` is none of ours alone, and Alembic loads migrations as files."""
    tops = (PLUGINS / "plugin_utils", PLUGINS / "module_utils", ROOT / "tests" / "support")
    found = {path.parent for top in tops for path in top.rglob("*.py")}
    return sorted(folder for folder in found if folder != tops[0] and "migrations" not in folder.parts)


def test_every_package_has_one_docstring() -> None:
    files = [folder / "__init__.py" for folder in packages()]
    broken = [path.relative_to(ROOT) for path in files if not path.exists() or not is_one_docstring(path)]
    assert not broken, f"__init__.py says what comes in, what goes out and in which order to read, and does nothing:{told(broken)}"


def is_one_docstring(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return len(body) == 1 and isinstance(body[0], ast.Expr) and ast.get_docstring(ast.Module(body, [])) is not None


def test_tests_share_through_support_only() -> None:
    """What two folders of tests need is in `tests/support`; nothing imports a module of tests, and none changes where Python looks."""
    broken = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            wrong = ""
            if isinstance(node, ast.ImportFrom) and _leads_astray(node, path):
                wrong = f"imports {node.module}"
            if isinstance(node, ast.Attribute) and node.attr in GROWING and ast.unparse(node.value) == "sys.path":
                wrong = "changes sys.path"
            broken += [f"{path.relative_to(ROOT)}:{node.lineno} {wrong}"] if wrong else []
    assert not broken, f"move what is shared to tests/support:{told(broken)}"


def _leads_astray(node: ast.ImportFrom, path: Path) -> bool:
    """Tell of an import of a module of tests, or from another folder of tests than `support` and `standins`."""
    name = node.module or ""
    if name.split(".")[-1] == "conftest" or name.split(".")[-1].startswith("test_"):
        return True
    folder = name.removeprefix(f"{COLLECTION}tests.").split(".")[0]
    return name.startswith(f"{COLLECTION}tests.") and folder not in {"support", "standins", path.relative_to(ROOT / "tests").parts[0]}
