# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that modules document."""

from __future__ import annotations

import importlib
import typing as t

import yaml

PLUGINS = "ansible_collections.bareon.allocator.plugins"


def documented_options(name: str) -> dict[str, t.Any]:
    """Return the options that the documentation of a module has, those of its fragments included."""
    text = importlib.import_module(f"{PLUGINS}.modules.{name}").DOCUMENTATION
    document = yaml.safe_load(text)
    options = dict(document.get("options") or {})
    for fragment in document.get("extends_documentation_fragment") or ():
        _namespace, _collection, file, *part = fragment.split(".")
        module = importlib.import_module(f"{PLUGINS}.doc_fragments.{file}")
        described = yaml.safe_load(getattr(module.ModuleDocFragment, part[0].upper() if part else "DOCUMENTATION"))
        for key, option in (described.get("options") or {}).items():
            options.setdefault(key, option)
    return options
