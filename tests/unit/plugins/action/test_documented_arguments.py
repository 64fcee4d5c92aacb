# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action has the options that its documentation describes: their types, defaults and choices."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house.documented import documented_options

ROOT = Path(__file__).resolve().parents[4]
PLUGINS = "ansible_collections.bareon.allocator.plugins"
COMPARED = ("type", "default", "choices", "required", "elements")
BLANK = {"type": "str", "required": False}
ACTIONS = sorted(path.stem for path in (ROOT / "plugins" / "action").glob("*.py") if path.stem != "__init__")


def differences(place, arguments, options):
    """Yield where the code and the documentation differ, options of options included."""
    for key in sorted({*arguments, *options}):
        if key not in arguments or key not in options:
            yield f"{place}{key} is only in the {'code' if key in arguments else 'documentation'}"
            continue
        code, text = arguments[key], options[key]
        # What the code takes as it is, it reads by itself, and so reports all mistakes at once.
        is_raw = code.get("type") == "raw" and code.get("default") is None
        for field in ("required", "default") if is_raw else COMPARED:
            says = [entry.get(field, BLANK.get(field)) for entry in (code, text)]
            if says[0] != says[1]:
                yield f"{place}{key}.{field} is {says[0]!r} in the code, {says[1]!r} in the documentation"
        if "options" in text or ("options" in code and "suboptions" in text):
            yield from differences(f"{place}{key}.", code.get("options") or {}, text.get("suboptions") or {})


@pytest.mark.parametrize("name", ACTIONS)
def test_documented_options_are_those_of_the_code(name):
    action = importlib.import_module(f"{PLUGINS}.action.{name}").ActionModule
    arguments = getattr(action, "ARGUMENTS", None)
    if arguments is None:
        # It hands the options on to its module, which reads them.
        module = importlib.import_module(f"{PLUGINS}.modules.{name}")
        assert hasattr(module, "main") or hasattr(module, "run"), name
        return
    assert list(differences("", arguments, documented_options(name))) == []
