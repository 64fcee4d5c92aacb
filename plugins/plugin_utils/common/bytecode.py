# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load the collection's own files by Python's cache of bytecode.

Ansible's loader compiles every file of a collection anew in every run, which for a plan of disks is a sixth of all that it
costs. Python's own loader, which Ansible uses for everything else, keeps what was compiled beside the source, and compiles where
it cannot or where the source has changed.
"""

from __future__ import annotations

import sys
import typing as t
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader

_ANSIBLE = "ansible.utils.collection_loader."


class BytecodeFinder(MetaPathFinder):
    """Finds what lies in the packages of one prefix, which ends with a dot; all else is left to the finders after it."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: t.Any = None) -> ModuleSpec | None:
        """Return how a module is loaded, None where it is not ours or no file."""
        for folder in (path or ()) if fullname.startswith(self._prefix) else ():
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(fullname)
            # A folder without a file of its own is a package to Ansible's loader; that knows what to make of it.
            if spec is not None and spec.loader is not None:
                return spec
        return None


def keep_bytecode(module: str) -> None:
    """Have all plugins beside a module loaded so from now on, where Ansible's loader has loaded that; else nothing is to be done."""
    loader = getattr(sys.modules[module], "__loader__", None)
    plugins, plugin_utils, _inside = module.partition(".plugin_utils.")
    if plugin_utils and type(loader).__module__.startswith(_ANSIBLE):
        sys.meta_path.insert(0, BytecodeFinder(f"{plugins}."))
