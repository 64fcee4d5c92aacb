# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an expression may cost: at most 2 s of CPU time and 256 MiB, and values of a size that a plan has a use for.

Every function of YAQL is wrapped, so that what it returns is measured before anything else uses it, and the CPU time is checked
between any two calls. What goes on within one call, as a regular expression that never ends or numbers of a million digits, is ended by
a timer of the process and by its limit of address space. Both belong to the main thread: signals reach no other, and a limit of
the process would hit what its other threads do. In another thread, regular expressions are refused instead.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import resource
import signal
import threading
import time
import typing as t
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from ..._common.libraries import yaql_contexts, yaql_specs, yaql_utils

SECONDS = 1.5
MEMORY_MIB = 256
MOST_VALUES = 10_000
"""Items of a collection, characters of a text, and all that is in a value with all that is in that, and so on."""
_MOST_BITS = 4096
_AGAIN_SECONDS = 0.25
_STATM = Path("/proc/self/statm")
_BITS: Mapping[str, Callable[[int, int], int]] = {
    "pow": lambda base, exponent: base.bit_length() * exponent if abs(base) > 1 else 1,
    "shift_bits_left": lambda number, bits: number.bit_length() + bits,
}
"""How many bits a number has at most that a function of YAQL makes of two; such numbers can take long to make."""


class TooDear(BaseException):
    """An expression over its limits; the text says which. No Exception, for what YAQL calls may catch these."""


@dataclass
class _Meter:
    """One evaluation: when its CPU time is over, and what is in the values that were made in it.

    Values are kept until it ends, so that the identity of one is never that of another.
    """

    deadline: float
    in_main_thread: bool
    weights: dict[int, tuple[t.Any, int]] = field(default_factory=dict)

    def check_time(self) -> None:
        if time.thread_time() > self.deadline:
            raise TooDear(f"it takes more than {SECONDS} s of CPU time")

    def check_value(self, value: t.Any) -> None:
        if isinstance(value, str):
            if len(value) > MOST_VALUES:
                raise TooDear(f"it makes a text of more than {MOST_VALUES} characters")
        elif isinstance(value, int):
            if value.bit_length() > _MOST_BITS:
                raise TooDear(f"it makes a number of more than {_MOST_BITS} bits")
        elif self._weight(value) > MOST_VALUES:
            raise TooDear(f"it makes a value with more than {MOST_VALUES} values in it")

    def _weight(self, value: t.Any) -> int:
        """Return how many values are in one: shared ones count at each place, as they do when it is compared or copied."""
        if not is_made(value):
            return 1
        inner = value.values() if isinstance(value, Mapping) else value
        known = self.weights.get(id(value))
        if known is None:
            known = self.weights[id(value)] = (value, 1 + sum(map(self._weight, inner)))
        return known[1]


def is_made(value: t.Any) -> bool:
    """Return whether a value is a collection that an expression has made, no view of the facts: these are not read unless they must be."""
    return isinstance(value, (tuple, list, Set, dict, yaql_utils.FrozenDict))


_METER: contextvars.ContextVar[_Meter] = contextvars.ContextVar("meter")
"""That of the evaluation that runs in this thread."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Run an evaluation within its limits; TooDear or MemoryError ends it. Signals, timers and limits are then as they were."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    token = _METER.set(_Meter(time.thread_time() + SECONDS, in_main_thread))
    try:
        if in_main_thread:
            with _timer(), _address_space():
                yield
        else:
            yield
    finally:
        _METER.reset(token)


class MeteredContext(yaql_contexts.Context):  # type: ignore[misc, unused-ignore]
    """A context whose functions are measured as they are called."""

    def register_function(self, spec: t.Any, *args: t.Any, **kwargs: t.Any) -> None:
        """Register a function, wrapped."""
        exclusive = kwargs.pop("exclusive", False)
        if not isinstance(spec, yaql_specs.FunctionDefinition):
            spec = yaql_specs.get_function_definition(spec, *args, **{**kwargs, "convention": self.convention})
        spec.payload = _metered(spec.payload)
        super().register_function(spec, exclusive=exclusive)


def _metered(payload: Callable[..., t.Any]) -> Callable[..., t.Any]:
    has_pattern = payload.__module__.endswith(".regex")
    bits = _BITS.get(payload.__name__.strip("_"))

    @functools.wraps(payload)
    def measured(*args: t.Any, **kwargs: t.Any) -> t.Any:
        meter = _METER.get()
        meter.check_time()
        if has_pattern and not meter.in_main_thread:
            raise TooDear("it has a regular expression, which cannot be limited outside of the main thread")
        numbers = [argument for argument in args if isinstance(argument, int)] if bits else []
        if bits and len(numbers) == 2 and bits(*numbers) > 2 * _MOST_BITS:
            raise TooDear(f"it makes a number of more than {_MOST_BITS} bits")
        result = payload(*args, **kwargs)
        meter.check_value(result)
        return _InOrder(result) if isinstance(result, frozenset) and not isinstance(result, _InOrder) else result

    return measured


class _InOrder(frozenset[t.Any]):
    """A set that gives its items in the same order in every run."""

    def __iter__(self) -> Iterator[t.Any]:
        return iter(sorted(super().__iter__(), key=_order))


def _order(value: t.Any) -> tuple[str, t.Any]:
    """Return what sorts values of any kinds; views of the facts by where they are in these."""
    if isinstance(value, (str, int, float)):
        return type(value).__name__, value
    if is_made(value):
        items = value.items() if isinstance(value, Mapping) else value
        keys = [_order(item) for item in items]
        return type(value).__name__, keys if isinstance(value, (tuple, list)) else sorted(keys)
    return type(value).__name__, repr(getattr(value, "path", None))


@contextlib.contextmanager
def _timer() -> Iterator[None]:
    """Raise TooDear after so much CPU time, and again from time to time, in case that what runs then swallows it."""
    over = False

    def end(_signal: int, _frame: t.Any) -> None:
        if not over:
            raise TooDear(f"it takes more than {SECONDS} s of CPU time")

    handler = signal.getsignal(signal.SIGVTALRM)
    if handler is None:
        # Code outside Python uses the signal: the clock between calls has to suffice.
        yield
        return
    timer = signal.getitimer(signal.ITIMER_VIRTUAL)
    try:
        signal.signal(signal.SIGVTALRM, end)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS, _AGAIN_SECONDS)
        try:
            yield
        finally:
            over = True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
        signal.signal(signal.SIGVTALRM, handler)


@contextlib.contextmanager
def _address_space() -> Iterator[None]:
    """Let the process grow by so much only, where its size can be read."""
    try:
        pages = int(_STATM.read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MEMORY_MIB * 1024**2
    bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([most, *bounds]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
