# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The third-party libraries of the controller's side, guarded in one place.

Rooms write `from ..common.libraries import np, sa`. A library that is not there, or is broken, is stood in for by
something that lets files be imported and types be named, and that fails as soon as it is asked to compute. No door lets
it come to that: each asks `refuse_missing` first, which names all that is missing at once, and how to install it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import sys
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    import alembic.op as alembic_op
    import alembic.operations as alembic_operations
    import alembic.runtime.migration as alembic_migration
    import alembic.script as alembic_script
    import highspy
    import numpy as np
    import numpy.typing as npt
    import os_resource_classes
    import os_traits
    import sqlalchemy as sa
    import sqlalchemy.dialects.sqlite as sqlite_dialect
    import yaql
    import yaql.language.contexts as yaql_contexts
    import yaql.language.exceptions as yaql_exceptions
    import yaql.language.expressions as yaql_expressions
    import yaql.language.specs as yaql_specs
    import yaql.language.utils as yaql_utils
    import yaql.language.yaqltypes as yaqltypes

__all__ = [
    "REQUIREMENTS",
    "MissingLibraries",
    "alembic_migration",
    "alembic_op",
    "alembic_operations",
    "alembic_script",
    "describe_missing",
    "highspy",
    "np",
    "npt",
    "os_resource_classes",
    "os_traits",
    "refuse_missing",
    "sa",
    "sqlite_dialect",
    "yaql",
    "yaql_contexts",
    "yaql_exceptions",
    "yaql_expressions",
    "yaql_specs",
    "yaql_utils",
    "yaqltypes",
]

REQUIREMENTS = Path(__file__).resolve().parents[3] / "requirements.txt"
"""What the collection needs on the controller, one requirement a line."""

_MODULES = {
    "alembic_migration": "alembic.runtime.migration",
    "alembic_op": "alembic.op",
    "alembic_operations": "alembic.operations",
    "alembic_script": "alembic.script",
    "highspy": "highspy",
    "np": "numpy",
    "npt": "numpy.typing",
    "os_resource_classes": "os_resource_classes",
    "os_traits": "os_traits",
    "sa": "sqlalchemy",
    "sqlite_dialect": "sqlalchemy.dialects.sqlite",
    "yaql": "yaql",
    "yaql_contexts": "yaql.language.contexts",
    "yaql_exceptions": "yaql.language.exceptions",
    "yaql_expressions": "yaql.language.expressions",
    "yaql_specs": "yaql.language.specs",
    "yaql_utils": "yaql.language.utils",
    "yaqltypes": "yaql.language.yaqltypes",
}


class MissingLibraries(Exception):
    """Libraries of requirements.txt that this Python does not have, has too old, or cannot load."""


class _Absent:
    """Stands in for a library where types are named and tables declared; computes nothing."""

    def __init__(self, cause: ImportError) -> None:
        self.cause = cause

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **options: object) -> t.Any:
        # Code of a module or of a class declares; code of a function computes.
        if sys._getframe(1).f_code.co_flags & inspect.CO_OPTIMIZED:
            raise MissingLibraries(describe_missing(self.cause))
        return self

    def __getitem__(self, key: object) -> _Absent:
        return self

    def __iter__(self) -> t.Iterator[t.Any]:
        return iter(())

    def __add__(self, other: object) -> _Absent:
        return self

    def __or__(self, other: object) -> _Absent:
        return self

    __radd__ = __ror__ = __add__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


_causes: dict[str, ImportError] = {}
"""What went wrong, by the attribute that was asked for."""


def __getattr__(name: str) -> t.Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # One thread per process: programs of numpy are small here, and making a pool of threads takes longer than they do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    loaded: t.Any
    try:
        loaded = importlib.import_module(_MODULES[name])
    except ImportError as error:
        _causes[name] = error
        loaded = _Absent(error)
    globals()[name] = loaded
    return loaded


def refuse_missing() -> None:
    """Raise MissingLibraries where a library that was asked for is not there.

    Asked by every door before it computes; costs nothing while all is well.
    """
    if _causes:
        raise MissingLibraries(describe_missing(next(iter(_causes.values()))))


def describe_missing(cause: ImportError) -> str:
    """Return one sentence on all that is missing or too old, by the names of packages, and the command that installs it."""
    missing = [line for line in _requirements() if not _is_installed(line)]
    install = f"Install what is needed with: {sys.executable} -m pip install -r {REQUIREMENTS}"
    if not missing:
        return f"bareon.allocator cannot load a Python library that {sys.executable} has: {cause}. {install}"
    return f"bareon.allocator needs Python libraries that {sys.executable} does not have: {', '.join(missing)} ({cause}). {install}"


def _requirements() -> list[str]:
    try:
        lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _is_installed(line: str) -> bool:
    # Ansible itself depends on packaging; it is loaded only where something is missing.
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    try:
        return requirement.specifier.contains(importlib.metadata.version(requirement.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False
