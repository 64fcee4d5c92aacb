# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The third-party libraries of the controller's side, guarded in one place.

Rooms write `from ..common.libraries import np, sa`. A library that is not there, is too old or broken, is stood in for by
something that lets files be imported and types be named, and that fails as soon as it is asked to compute. No door lets
it come to that: each asks `refuse_missing` first, which names all that is missing at once, and how to install it. What is
dear to load and seldom needed is announced with `expect` and taken as `libraries.networkx` by the function that needs it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import operator
import os
import re
import sys
import types
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    import alembic.op as alembic_op
    import alembic.operations as alembic_operations
    import alembic.runtime.migration as alembic_migration
    import alembic.script as alembic_script
    import highspy
    import networkx
    import numpy as np
    import numpy.typing as npt
    import os_resource_classes
    import os_traits
    import proxmoxer
    import requests
    import scipy.optimize as scipy_optimize
    import scipy.sparse as scipy_sparse
    import sqlalchemy as sa
    import yaql
    import yaql.language.contexts as yaql_contexts
    import yaql.language.exceptions as yaql_exceptions
    import yaql.language.expressions as yaql_expressions
    import yaql.language.factory as yaql_factory
    import yaql.language.specs as yaql_specs
    import yaql.language.utils as yaql_utils
    from yaql.language import yaqltypes

__all__ = [
    "REQUIREMENTS",
    "MissingLibraries",
    "alembic_migration",
    "alembic_op",
    "alembic_operations",
    "alembic_script",
    "describe_missing",
    "expect",
    "highspy",
    "networkx",
    "np",
    "npt",
    "os_resource_classes",
    "os_traits",
    "part_of",
    "proxmoxer",
    "refuse_missing",
    "requests",
    "sa",
    "scipy_optimize",
    "scipy_sparse",
    "yaql",
    "yaql_contexts",
    "yaql_exceptions",
    "yaql_expressions",
    "yaql_factory",
    "yaql_specs",
    "yaql_utils",
    "yaqltypes",
]

REQUIREMENTS = Path(__file__).resolve().parents[3] / "requirements.txt"
"""What the collection needs on the controller, one requirement a line, with bounds of the kinds `>=`, `<` and `!=`; `requirements-*.txt`
in the same folder name what a part of the collection needs."""

_MODULES = {
    "alembic_migration": "alembic.runtime.migration",
    "alembic_op": "alembic.op",
    "alembic_operations": "alembic.operations",
    "alembic_script": "alembic.script",
    "highspy": "highspy",
    "networkx": "networkx",
    "np": "numpy",
    "npt": "numpy.typing",
    "os_resource_classes": "os_resource_classes",
    "os_traits": "os_traits",
    "proxmoxer": "proxmoxer",
    "requests": "requests",
    "sa": "sqlalchemy",
    "scipy_optimize": "scipy.optimize",
    "scipy_sparse": "scipy.sparse",
    "yaql": "yaql",
    "yaql_contexts": "yaql.language.contexts",
    "yaql_exceptions": "yaql.language.exceptions",
    "yaql_expressions": "yaql.language.expressions",
    "yaql_factory": "yaql.language.factory",
    "yaql_specs": "yaql.language.specs",
    "yaql_utils": "yaql.language.utils",
    "yaqltypes": "yaql.language.yaqltypes",
}
_PARTS = {"sqlalchemy": ("sqlalchemy.dialects.sqlite",)}
"""What a library would load when it is first used: in every process that Ansible forks, instead of once before."""
_DRIVERS = {
    "postgresql": ("psycopg", "sqlalchemy.dialects.postgresql"),
    "mysql": ("pymysql", "sqlalchemy.dialects.mysql"),
    "mariadb": ("pymysql", "sqlalchemy.dialects.mysql"),
}
"""What SQLAlchemy would load when it first connects, by the kind of database that BAREON_DATABASE names."""

_PARTS_OF_ACTIONS = {"disk": "disks", "group": "groups", "provider": "ledger", "node": "ledger"}
"""The part of an action, by the first word of its name."""
_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
_BOUND = re.compile(r"(>=|<|!=)\s*([\d.]+)")


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
        self._only_declare()
        return self

    def __iter__(self) -> t.Iterator[t.Any]:
        self._only_declare()
        return iter(())

    def _only_declare(self) -> None:
        # Code of a module or of a class declares; code of a function computes. Comprehensions belong to what is around them.
        frame: types.FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_name in _COMPREHENSIONS:
            frame = frame.f_back
        if frame is None or frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            raise MissingLibraries(describe_missing(self.cause, ""))

    def __getitem__(self, key: object) -> _Absent:
        return self

    def __add__(self, other: object) -> _Absent:
        return self

    def __or__(self, other: object) -> _Absent:
        return self

    __radd__ = __ror__ = __lt__ = __gt__ = __le__ = __ge__ = __add__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()


_causes: dict[str, ImportError] = {}
"""What is wrong with a library, by its module."""


def __getattr__(name: str) -> t.Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # One thread per process: programs of numpy are small here, and making a pool of threads takes longer than they do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    module = _MODULES[name]
    loaded: t.Any
    try:
        loaded = importlib.import_module(module)
        _refuse_old(module.partition(".")[0])
        for part in _PARTS.get(module, ()):
            importlib.import_module(part)
    except ImportError as error:
        loaded = _Absent(_causes.setdefault(module.partition(".")[0], error))
    if module == "sqlalchemy" and not isinstance(loaded, _Absent):
        _load_driver(os.environ.get("BAREON_DATABASE", ""))
        # It compiles its pattern of URLs when it is first given one.
        loaded.make_url("sqlite://")
    globals()[name] = loaded
    return loaded


def _load_driver(database: str) -> None:
    """Load the driver of a database once, before Ansible forks; a missing one is reported when a task connects."""
    for part in _DRIVERS.get(re.split(r"[+:]", database, maxsplit=1)[0], ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(part)


def expect(module: str) -> None:
    """Note whether a library is there that is dear to load, and is loaded by the function that needs it.

    Its version is checked when it is loaded, since only a loaded library knows its version.
    """
    try:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    except ImportError as error:
        _causes.setdefault(module, error)


def part_of(action: str) -> str:
    """Return the part of the collection that an action belongs to, as `requirements-*.txt` name them; "" where it has none."""
    return _PARTS_OF_ACTIONS.get(action.rpartition(".")[2].partition("_")[0], "")


def refuse_missing(part: str) -> None:
    """Raise MissingLibraries where a library that was asked for, or is expected, is not there or too old, and `part` needs it.

    Asked by every door before it computes; costs nothing while all is well. The part "" needs all libraries.
    """
    if not _causes:
        return
    needed = _requirements(_file_of(part))
    cause = next((cause for module, cause in _causes.items() if module in needed), None)
    if cause is not None:
        raise MissingLibraries(describe_missing(cause, part))


def describe_missing(cause: ImportError, part: str) -> str:
    """Return one sentence on all that a part lacks or has too old, by the names of packages, and the command that installs it."""
    file = _file_of(part)
    needed = _requirements(file)
    missing = [said for said in (_fault(line) for module, line in _requirements(REQUIREMENTS).items() if module in needed) if said]
    install = f"Install what is needed with: {sys.executable} -m pip install -r {file}"
    if not missing:
        return f"bareon.allocator cannot load a Python library that {sys.executable} has: {cause}. {install}"
    return f"bareon.allocator needs Python libraries that {sys.executable} does not have: {', '.join(missing)}. {install}"


def _file_of(part: str) -> Path:
    return REQUIREMENTS.with_name(f"requirements-{part}.txt") if part else REQUIREMENTS


@functools.cache
def _requirements(file: Path) -> dict[str, str]:
    """Return the requirements of a file by the modules that they bring."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {_package(line).replace("-", "_"): line.strip() for line in lines if line.strip() and not line.startswith(("#", "-"))}


def _package(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _fault(requirement: str) -> str:
    """Return what to say about a requirement that is not met, else nothing."""
    module = _package(requirement).replace("-", "_")
    version = _version(module, requirement)
    if version is None:
        return requirement if importlib.util.find_spec(module) is None else ""
    return "" if _fits(version, requirement) else f"{requirement} (it has {version})"


def _refuse_old(module: str) -> None:
    """Raise ImportError when an installed library has a version that requirements.txt excludes."""
    requirement = _requirements(REQUIREMENTS).get(module, "")
    version = _version(module, requirement) if requirement else None
    if version is not None and not _fits(version, requirement):
        raise ImportError(f"{requirement} is needed, {version} is installed", name=module)


def _version(module: str, requirement: str) -> str | None:
    """Return the version of a library that is there; None where it does not say."""
    known: dict[str, t.Any] = getattr(sys.modules.get(module), "__dict__", {})
    if "__version__" in known:
        return str(known["__version__"])
    if "HIGHS_VERSION_MAJOR" in known:
        return ".".join(str(known[f"HIGHS_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH"))
    # Loaded here because it is dear, and hardly any library comes to it.
    import importlib.metadata

    try:
        return importlib.metadata.version(_package(requirement))
    except importlib.metadata.PackageNotFoundError:
        return None


def _fits(version: str, requirement: str) -> bool:
    release = _release(version)
    meets = {">=": operator.ge, "<": operator.lt, "!=": operator.ne}
    return all(meets[kind](release, _release(bound)) for kind, bound in _BOUND.findall(requirement))


def _release(version: str) -> list[int]:
    """Return the numbers of a release, `1.12` as `1.12.0`."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return numbers + [0] * (3 - len(numbers))
