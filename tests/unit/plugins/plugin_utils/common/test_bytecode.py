# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of the collection's files what was compiled once is not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils import common
from ansible_collections.bareon.allocator.plugins.plugin_utils.common import bytecode

PREFIX = bytecode.__name__.removesuffix("plugin_utils.common.bytecode")
AS_ANSIBLE_LOADS = """
import sys
from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
from ansible.utils.collection_loader import _collection_finder
_collection_finder._meta_yml_to_dict = lambda raw, where: {}
_AnsibleCollectionFinder([sys.argv[1]], True)._install()
from ansible_collections.bareon.allocator.plugins.plugin_utils.common import bytecode
bytecode.keep_bytecode(bytecode.__name__)
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk import model
from ansible_collections.bareon.allocator.plugins.module_utils.storage import lvm
print(type(bytecode.__loader__).__name__, type(model.__loader__).__name__, type(lvm.__loader__).__name__)
"""


def test_a_module_of_the_collection_is_found_with_pythons_own_loader() -> None:
    found = bytecode.BytecodeFinder(PREFIX).find_spec(f"{common.__name__}.errors", common.__path__)
    assert found is not None
    assert isinstance(found.loader, SourceFileLoader)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ansible_collections.ansible.posix.plugins.action.patch", common.__path__),
        (f"{common.__name__}.no_such_file", common.__path__),
        (f"{common.__name__}.templates", common.__path__),
        (PREFIX.removesuffix("."), None),
    ],
)
def test_what_is_not_ours_or_no_file_is_left_to_others(name: str, path: list[str] | None) -> None:
    assert bytecode.BytecodeFinder(PREFIX).find_spec(name, path) is None


def test_where_python_loads_the_collection_nothing_is_changed() -> None:
    before = list(sys.meta_path)
    bytecode.keep_bytecode(bytecode.__name__)
    assert sys.meta_path == before


def test_what_ansible_loads_is_loaded_from_bytecode(tmp_path: Path) -> None:
    collections = Path(common.__path__[0]).parents[5]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    environment |= {"PYTHONPYCACHEPREFIX": str(tmp_path), "ANSIBLE_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", AS_ANSIBLE_LOADS, str(collections)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_AnsibleCollectionLoader", "SourceFileLoader", "SourceFileLoader"]
    assert list(tmp_path.rglob("disk/model.*.pyc"))
