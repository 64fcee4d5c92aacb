# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dask's client without pickles: what a worker sends is data, and makes nothing run here.

    with nothing_unpickled():
        ...                                        # a client of Dask, from its beginning to its end

The client reads pickles in results, errors, warnings and headers, whatever serializers are configured. Here pickles may only hold text,
numbers, lists and mappings, and the two types that messages of Dask name. Anything else is a NotRead: no type is looked up, and no
function is called.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pickle
import typing as t
from collections.abc import Iterator

_READ_PICKLES = ("dask", "pickle")
"""Families of Dask's serializers."""
_ALLOWED = {("builtins", "bytes"): bytes, ("builtins", "str"): str}


class NotRead(TypeError):
    """A pickle that names a type or a function. It is a TypeError, which Dask takes for a traceback that it cannot read."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> t.Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise NotRead(f"a pickle of {module}.{name}, which is not read") from None


def _loads(data: t.Any, /, *, buffers: t.Any = (), **_options: t.Any) -> t.Any:
    return _Unpickler(io.BytesIO(bytes(data)), buffers=buffers).load()


@contextlib.contextmanager
def nothing_unpickled() -> Iterator[None]:
    """Have this process read no pickle but plain data until the block ends; what Dask could not read is a NotRead in its place."""
    families = importlib.import_module("distributed.protocol.serialize").families
    usual, loads = dict(families), pickle.loads
    families.update({name: (dumps, _standing_in(read), *more) for name, (dumps, read, *more) in usual.items() if name in _READ_PICKLES})
    pickle.loads = _loads
    try:
        yield
    finally:
        pickle.loads = loads
        families.update(usual)


def _standing_in(loads: t.Any) -> t.Any:
    """Return what reads a part of a message, or gives the error in its place: one that is raised would end the connection."""

    def read(*given: t.Any, **options: t.Any) -> t.Any:
        try:
            return loads(*given, **options)
        except NotRead as error:
            return error

    return read
