# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which file imports which: the rooms of `plugins`, their floors, and the arrows between them.

A room is `module_utils` or a folder of `plugin_utils`; all other folders of `plugins` are doors, for Ansible enters there.
The leading underscore, which tells people that nothing outside imports a package, is no part of a room's name.
A floor of a room is a package in it; a file at a room's top is a floor of its own.
"""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
COLLECTION = "ansible_collections.bareon.allocator."
ROOMS = ("module_utils", "common", "disk", "provider", "group", "bridge")


@dataclasses.dataclass(frozen=True)
class Import:
    """A line by which one file imports another, or a library: `target` is a file below `plugins` without its ending, or None."""

    source: Path
    line: int
    name: str
    target: tuple[str, ...] | None

    def __str__(self) -> str:
        shown = "/".join(self.target) + ".py" if self.target else self.name
        return f"{self.source.relative_to(ROOT)}:{self.line} imports {shown}"


def source_files() -> dict[tuple[str, ...], Path]:
    """Return the Python files of `plugins` by their place, such as ("plugin_utils", "disk", "model")."""
    return {path.relative_to(PLUGINS).with_suffix("").parts: path for path in sorted(PLUGINS.rglob("*.py"))}


def imports() -> list[Import]:
    """Return what the files of `plugins` import, wherever in the file the line stands."""
    files = source_files()
    return [found for place, path in files.items() for found in imports_of(place, path, files)]


def imports_of(place: tuple[str, ...], path: Path, files: dict[tuple[str, ...], Path]) -> list[Import]:
    """Return the imports of one file; a name that is no file of its own counts for the file that it is imported from."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found += [Import(path, node.lineno, alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, place)
            for alias in node.names:
                choices = () if origin is None else ((*origin, alias.name), origin, (*origin, "__init__"))
                target = next((choice for choice in choices if choice in files), None)
                found.append(Import(path, node.lineno, "." * node.level + (node.module or ""), target))
    return found


def _origin(node: ast.ImportFrom, place: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the place that a `from` names, or None where it is outside of `plugins`."""
    named = tuple(node.module.split(".")) if node.module else ()
    if node.level:
        return place[: len(place) - node.level] + named
    inside = f"{COLLECTION}plugins."
    return tuple(node.module.removeprefix(inside).split(".")) if node.module and node.module.startswith(inside) else None


def room_of(place: tuple[str, ...]) -> str | None:
    """Return the room of a file, or None for a door."""
    if place[0] == "plugin_utils":
        return place[1].removeprefix("_")
    return place[0] if place[0] == "module_utils" else None


def floor_of(place: tuple[str, ...]) -> str:
    """Return the package of a file inside its room, or the file's own name at a room's top."""
    inside = place[1:] if place[0] == "module_utils" else place[2:]
    return ("/".join(inside[:-1]) or inside[-1]).removeprefix("_")
