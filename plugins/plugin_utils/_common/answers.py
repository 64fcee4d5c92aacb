# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job on another machine answers, as JSON: written and read by the type that the job's function says it returns.

    text = written(job, result)         # there
    result = read(job, text)            # here: ValueError for anything that is not of that type

Reading makes values of the types that the function names (dataclasses, enumerations, tuples, arrays of numbers) and of no other: an answer
cannot name a type or a function of its own, as a pickle can.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import json
import types
import typing as t
from collections.abc import Callable

from ...module_utils._data.errors import InputError, Mistake, NoSolution, Unavailable
from .libraries import np

_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPPINGS = (dict, collections.abc.Mapping)


def written(job: Callable[..., t.Any], result: t.Any) -> str:
    """Return a job's result as JSON. Raises TypeError for what is not of the type that the job says."""
    return json.dumps(_plain(answer_type(job), result))


def read(job: Callable[..., t.Any], text: str) -> t.Any:
    """Return the result that JSON holds; raises ValueError for what is no JSON, or not of the type that the job says."""
    try:
        return _made(answer_type(job), json.loads(text))
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"is not what the job returns ({type(error).__name__}: {error})") from error


def answer_type(job: t.Any) -> t.Any:
    """Return the type of a job's result: what its function says, through partials, and through functions that return another's result."""
    while True:
        given: tuple[t.Any, ...] = ()
        while isinstance(job, functools.partial):
            given, job = (*job.args, *given), job.func
        if isinstance(job, type):
            return job
        found = t.get_type_hints(job).get("return", t.Any)
        if not isinstance(found, t.TypeVar):
            return found
        job = next(argument for argument in given if callable(argument))


def _plain(kind: t.Any, value: t.Any) -> t.Any:
    """Return a value of a type as JSON has it."""
    origin, parts = t.get_origin(kind) or kind, t.get_args(kind)
    if value is None:
        return None
    if _is_open(kind):
        return _as_it_is(value)
    if origin in (t.Union, types.UnionType):
        return _plain(next(part for part in parts if _fits(part, value)), value)
    if _is_array(origin):
        return [value.dtype.str, value.tolist()]
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        hints = t.get_type_hints(origin)
        return {field.name: _plain(hints[field.name], getattr(value, field.name)) for field in dataclasses.fields(origin)}
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return value.value
    if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):
        hints = t.get_type_hints(origin)
        return [_plain(hints[name], item) for name, item in zip(origin._fields, value, strict=True)]
    if origin in _MAPPINGS:
        key, item = parts or (t.Any, t.Any)
        return [[_plain(key, one), _plain(item, other)] for one, other in value.items()]
    if origin in _LISTS:
        return [_plain(part, item) for part, item in zip(_part_types(origin, parts, len(value)), value, strict=True)]
    if origin in (int, float, bool, str):
        return origin(value)
    raise TypeError(f"{kind} cannot be written as JSON")


def _made(kind: t.Any, data: t.Any) -> t.Any:
    """Return the value of a type that JSON stands for."""
    origin, parts = t.get_origin(kind) or kind, t.get_args(kind)
    if _is_open(kind):
        return data
    if kind in (None, type(None)):
        return _checked(data, type(None))
    if origin in (t.Union, types.UnionType):
        return _first_made(parts, data)
    if _is_array(origin):
        letters, values = data
        if np.dtype(letters).kind not in "biuf":
            raise ValueError(f"{letters} is no type of numbers")
        return np.array(values, dtype=letters)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        hints, names = t.get_type_hints(origin), {field.name for field in dataclasses.fields(origin)}
        if _checked(data, dict).keys() != names:
            raise ValueError(f"is not a {origin.__name__}")
        return origin(**{name: _made(hints[name], item) for name, item in data.items()})
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return origin(data)
    if isinstance(origin, type) and issubclass(origin, tuple) and hasattr(origin, "_fields"):
        hints = t.get_type_hints(origin)
        return origin(*(_made(hints[name], item) for name, item in zip(origin._fields, _checked(data, list), strict=True)))
    if origin in _MAPPINGS:
        key, item = parts or (t.Any, t.Any)
        return {_made(key, one): _made(item, other) for one, other in _checked(data, list)}
    if origin in _LISTS:
        made = [_made(part, item) for part, item in zip(_part_types(origin, parts, len(_checked(data, list))), data, strict=True)]
        return made if origin is list else frozenset(made) if origin in (set, frozenset) else tuple(made)
    if origin is float:
        return float(_checked(data, (int, float)))
    if origin in (int, bool, str):
        return _checked(data, origin)
    raise TypeError(f"{kind} cannot be read from JSON")


def _is_open(kind: t.Any) -> bool:
    """Return whether a type says nothing: then only plain data are written and read."""
    return kind in (t.Any, object) or isinstance(kind, t.TypeVar)


def _is_array(origin: t.Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, np.ndarray)


def _as_it_is(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {str(key): _as_it_is(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_it_is(item) for item in value]
    if hasattr(value, "item"):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is not plain data")


def _part_types(origin: t.Any, parts: tuple[t.Any, ...], length: int) -> list[t.Any]:
    """Return the type of each item of a list or a tuple."""
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return list(parts)
    return [parts[0] if parts else t.Any] * length


def _checked(data: t.Any, kinds: t.Any) -> t.Any:
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(data) not in wanted:
        raise ValueError(f"is {type(data).__name__} where {wanted[0].__name__} should be")
    return data


def _fits(kind: t.Any, value: t.Any) -> bool:
    """Return whether a value has a type, as far as the annotation says."""
    origin = t.get_origin(kind) or kind
    if _is_open(kind):
        return True
    if origin is float:
        return isinstance(value, (int, float)) or hasattr(value, "item")
    return isinstance(value, origin) if isinstance(origin, type) else False


def _first_made(parts: tuple[t.Any, ...], data: t.Any) -> t.Any:
    """Return the value by the first of some types that takes the data."""
    for part in parts:
        try:
            return _made(part, data)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    raise ValueError(f"is {type(data).__name__}, which none of {parts} is")


def written_error(error: Exception) -> t.Any:
    """Return an exception as plain data: those that the controller shows to users as they are, others as type and text."""
    if isinstance(error, InputError):
        return ["mistakes", [[mistake.place, mistake.says] for mistake in error.mistakes]]
    if isinstance(error, NoSolution):
        return ["no solution", str(error), _as_it_is(error.conflict)]
    return [
        "unavailable" if isinstance(error, Unavailable) else "other",
        f"{'' if isinstance(error, Unavailable) else type(error).__name__ + ': '}{error}",
    ]


def read_error(data: t.Any) -> Exception:
    """Return the exception that plain data stand for; raises ValueError or TypeError for anything else."""
    kind, *details = _checked(data, list)
    if kind == "mistakes":
        (mistakes,) = details
        return InputError([Mistake(_checked(place, str), _checked(says, str)) for place, says in _checked(mistakes, list)])
    if kind == "no solution":
        says, conflict = details
        return NoSolution(_checked(says, str), _checked(conflict, dict))
    (says,) = details
    return (Unavailable if kind == "unavailable" else RuntimeError)(_checked(says, str))
