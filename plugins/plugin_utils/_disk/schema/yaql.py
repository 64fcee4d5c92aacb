# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of a schema: a text that begins with `yaql=` stands for what YAQL makes of the hardware (`$`).

The prefix and the language are the seed's ("Dynamic parameters"). One engine serves the whole process: to create it costs
as much as some hundred evaluations, so it is made for the first expression, which a warm-up reads before Ansible forks.
"""

from __future__ import annotations

import functools
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ....module_utils._data.words import listed
from ..._common.libraries import yaql, yaql_contexts, yaql_expressions
from . import limits
from .functions import register
from .grammar import create_engine
from .limits import MOST_VALUES, MeteredContext, TooDear, is_made, limited
from .memo import Answers, Memory, MissingFactError, ReadSet, Remembered

PREFIX = re.compile(r"^\s*yaql\s*=\s*")

_MEMORY_QUOTA = 64 * 1024**2
_OPTIONS = {
    "yaql.limitIterators": MOST_VALUES,
    "yaql.memoryQuota": _MEMORY_QUOTA,
    "yaql.convertInputData": False,
    "yaql.convertOutputData": False,
}


_MOST_DISKS = 4
_NO_OPERATOR = re.compile(r"No function \"operator (\S+)\" matches supplied arguments")
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-fA-F]+>")
"""How Python shows an object that has no words for itself."""


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; the text says which one and why."""


def is_expression(value: t.Any) -> bool:
    """Return whether `value` is a text that stands for an expression."""
    return isinstance(value, str) and PREFIX.match(value) is not None


class Evaluator:
    """Evaluates expressions over one machine's facts, which it never changes; `memory` knows results for machines alike."""

    def __init__(self, facts: Mapping[str, t.Any], memory: Memory) -> None:
        self._facts = facts
        self._memory = memory
        self._answers: Answers = {}

    def __call__(self, text: str) -> t.Any:
        """Return the result of the expression as it is: numbers, text, lists, mappings, and parts of the facts, to be read only.

        Raises ExpressionError that quotes the expression.
        """
        source = _source(text)
        reason, value = self._memory.compute(source, self._facts, lambda facts: _outcome(source, facts))
        if reason:
            raise ExpressionError(f"expression {_shortened(source)!r} failed: {reason}{self._without(value)}")
        return value

    def _without(self, key: t.Any) -> str:
        """Return which disks have no fact of a name, and what to ask for instead."""
        found = self._facts.get("disks") if isinstance(key, str) else None
        lacking = [str(disk.get("id")) for disk in found or () if isinstance(disk, Mapping) and key not in disk]
        return f" (disks without it: {listed(lacking, _MOST_DISKS)}); $.get({key}) gives null for them" if lacking else ""

    def recall(self, text: str) -> Remembered | None:
        """Return what is known of the result, as [reason, value], if the expression was evaluated before; see Memory.recall."""
        return self._memory.recall(_source(text), self._facts, self._answers)


def read_set(texts: Iterable[str], facts: Mapping[str, t.Any], memory: Memory) -> ReadSet:
    """Return what expressions, all of which were evaluated before, read of a machine's facts."""
    return memory.read_set(map(_source, texts), facts)


def _source(text: str) -> str:
    return PREFIX.sub("", text, count=1).strip()


def _outcome(source: str, facts: t.Any) -> list[t.Any]:
    """Return why an expression fails, or nothing and its value. What fails is so remembered, too: a fleet does not pay for it again."""
    engine, context = _engine(), _library()
    try:
        with limited():
            value = _parsed(engine, source).evaluate(data=facts, context=context.create_child_context())
            return ["", _collected(value, [MOST_VALUES])]
    except TooDear as error:
        return [str(error), None]
    except MemoryError:
        return [f"it takes more than {limits.MEMORY_MIB} MiB of memory", None]
    except re.error as error:
        return [f"it has a bad regular expression: {error}", None]
    except Exception as error:
        # YAQL and what it calls raise errors of any type for expressions that somebody wrote.
        return [_reason(error), str(error.args[0]) if isinstance(error, MissingFactError) and error.of_disk else None]


def _collected(value: t.Any, left: list[int]) -> t.Any:
    """Return the value with lists in the place of what YAQL computes only when it is asked for; `left` says how many values it may have."""
    left[0] -= 1
    if left[0] < 0:
        raise TooDear(f"its result has more than {MOST_VALUES} values in it")
    if isinstance(value, Mapping) and is_made(value):
        return {key: _collected(item, left) for key, item in value.items()}
    if is_made(value) or (isinstance(value, Iterable) and not isinstance(value, (str, Mapping, Sequence))):
        return [_collected(item, left) for item in value]
    return value


@functools.cache
def _engine() -> t.Callable[[str], yaql_expressions.Statement]:
    return create_engine(_OPTIONS)


@functools.cache
def _library() -> yaql_contexts.ContextBase:
    """Return the functions of YAQL's standard library and ours."""
    # Dates have no use here, and the time of day would make two plans of one input.
    empty = MeteredContext(convention=yaql.language.conventions.CamelCaseConvention())
    context = yaql.create_context(context=empty, datetime=False)
    register(context)
    return context


@functools.lru_cache(maxsize=1024)
def _parsed(engine: t.Callable[[str], yaql_expressions.Statement], source: str) -> yaql_expressions.Statement:
    if not source:
        raise ValueError("it is empty")
    return engine(source)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the facts have no {error.args[0]!r}" if error.args else "the facts have no such key"
    said = str(error).replace("#property#", "property ").replace("#operator_", "operator ")
    operator = _NO_OPERATOR.fullmatch(said)
    if operator is not None:
        says = f"operator {operator[1]} does not take such values together, as text and a number"
        return f"{says}; int() makes a number of text, str() text of a number"
    return _ADDRESS.sub("a value", said) or type(error).__name__


def _shortened(source: str, longest: int = 120) -> str:
    line = " ".join(source.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
