# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All kinds of steps of the files of technologies, and a sample of each."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils import _steps
from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import ArrayOptions

_VALUES: dict[str, t.Any] = {
    **dict.fromkeys(("vdevs", "properties", "names", "parts", "entries"), ()),
    **{"type": "ext4", "sector": 512, "device": "/dev/sda1", "disk": "/dev/sda", "number": 1, "size": 4, "uuid": "u"},
}
_OF_TYPES: dict[str, t.Any] = {
    **{"tuple[str, ...]": ("/dev/sda1",), "tuple[int, ...]": (1,)},
    **{"int": 0, "bool": False, "str": "x", "t.Optional[str]": None, "ArrayOptions": ArrayOptions()},
}


def all_kinds() -> list[type[Step]]:
    """Return the kinds, by their names."""
    files = [importlib.import_module(f"{_steps.__name__}.{file.name}") for file in pkgutil.iter_modules(_steps.__path__)]
    found = {kind for file in files for kind in vars(file).values() if isinstance(kind, type) and issubclass(kind, Step)}
    return sorted((kind for kind in found if not inspect.isabstract(kind)), key=lambda kind: kind.__name__)


def sample(kind: type[Step]) -> Step:
    """Return a step of a kind with anything in it."""
    fields = dataclasses.fields(kind)
    return kind(**{field.name: _VALUES.get(field.name, _OF_TYPES.get(str(field.type))) for field in fields})
