# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which variables playbooks and roles read, found in their text."""

from __future__ import annotations

import re
import typing as t
import warnings
from collections.abc import Iterator
from pathlib import Path

import yaml
from jinja2 import Environment, nodes

from .imports import ROOT

_EXPRESSIONS = ("when", "that", "until", "failed_when", "changed_when", "var")
"""Keywords whose text is an expression without braces."""
_DOCUMENTED = re.compile(r"^# ((?:[a-z_]+, )*[a-z_]+) {2,}\S", re.MULTILINE)
"""How a playbook lists its variables at its head."""


def variables_read() -> set[str]:
    """Return the names that a template or a condition of a playbook or of a role reads, and those of all documented options."""
    names: set[str] = set()
    playbooks = sorted((ROOT / "playbooks").glob("*.yml"))
    parts = [file for part in ("tasks", "handlers", "defaults", "vars") for file in sorted((ROOT / "roles").glob(f"*/{part}/**/*.yml"))]
    for file in [*playbooks, *parts]:
        names |= names_read(file) | documented_variables(file)
    for file in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"].values():
            names.update(entry.get("options", {}))
    return names


def names_read(file: Path) -> set[str]:
    """Return the names that templates and conditions of a file read."""
    return set(_read(yaml.safe_load(file.read_text(encoding="utf-8")), expression=False))


def documented_variables(playbook: Path) -> set[str]:
    """Return the variables that a playbook lists at its head."""
    return {name for line in _DOCUMENTED.findall(playbook.read_text(encoding="utf-8")) for name in line.split(", ")}


def _read(value: t.Any, *, expression: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _read(item, expression=key in _EXPRESSIONS)
    elif isinstance(value, list):
        for item in value:
            yield from _read(item, expression=expression)
    elif isinstance(value, str):
        template = "{{" in value or "{%" in value
        if template or expression:
            with warnings.catch_warnings():
                # Patterns have backslashes that mean nothing to Python.
                warnings.simplefilter("ignore", DeprecationWarning)
                tree = Environment(autoescape=True).parse(value if template else f"{{{{ {value} }}}}")
            yield from (name.name for name in tree.find_all(nodes.Name) if name.ctx == "load")
