# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions that would take for ever, or all memory, end with a sentence."""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
import threading
import time
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema import limits
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Memory
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql import Evaluator, ExpressionError

FACTS = {"ram": 1024, "disks": [{"id": f"d{number}", "size": 20000, "type": "hdd"} for number in range(30)]}
COLLIDING = "range(9000).select($ * 2305843009213693951)"
NESTED = "range(40).aggregate([$1, $1], 0)"
ENDLESS = {
    "generator": "sequence(0).where($ < 0)",
    "generate": "generate(0, true, $ + 1).where($ < 0).len()",
    "numbers in numbers": "range(9999).select(range(9999).sum()).sum()",
    "products of ranges": "range(9000).selectMany(range(9000)).len()",
    "join of ranges": "range(9000).join(range(9000), true, [$1, $2]).len()",
    "lists in a list": "range(9000).select(range(9000).toList()).toList().len()",
    "texts": 'range(9000).select("a" * 9999).join("")',
    "equal hashes": f"range(20).select({COLLIDING}.toSet().len()).sum()",
    "sets in sets": "range(60).aggregate(set($1, [$1]), 0)",
}
PATTERNS = {
    "stars": '"' + "a" * 40 + 'b" =~ "(a*)*$"',
    "branches": 'regex("(a|a)*b").search("' + "a" * 60 + '")',
    "on facts": '$.disks.where((str($.id) + "' + "a" * 60 + '") =~ "(a|aa)+$b")',
}
HUGE = {
    "power": ("pow(10, 100000000)", "4096 bits"),
    "operator": ("range(100).aggregate($1 * $1, 3)", "4096 bits"),
    "shift": ("shiftBitsLeft(1, 10000000000)", "4096 bits"),
    "shift of a GiB": ("shiftBitsLeft(1, 1000000000)", "4096 bits"),
    "text": ('"a" * 20000', "10000 characters"),
    "literal": ('"' + "a" * 20000 + '"', "10000 characters"),
    "replaced": ('("a" * 9999).replace("", "b" * 9999)', "10000 characters"),
    "doubled list": ("generate([1], true, $ + $).last()", "10000 values"),
    "lists of one list": (NESTED, "10000 values"),
    "compared": (f"{NESTED} = {NESTED}", "10000 values"),
    "hashed": (f"[{NESTED}].distinct()", "10000 values"),
    "dicts": ("range(60).aggregate(dict(a => $1, b => $1), 0)", "10000 values"),
    "result": ("range(200).select(range(200))", "10000 values"),
    "long range": ("range(100000000)", "10000 values"),
    "deep list": ("range(5000).aggregate([$1], 0)", "recursion"),
    "brackets": ("[" * 3000 + "]" * 3000, "recursion"),
    "sum": ("1" + "+1" * 5000, "recursion"),
    "calls itself": ("def(f, f()) -> f()", "recursion"),
    "digits": ("9" * 100000, "digits"),
}


def reason(source: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        Evaluator(FACTS, Memory())(f"yaql={source}")
    return str(caught.value)


@pytest.fixture(autouse=True)
def _warm() -> None:
    """Make the engine, which is no part of what an expression costs."""
    Evaluator(FACTS, Memory())("yaql=$.ram")


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.2)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("source", [*ENDLESS.values(), *PATTERNS.values()], ids=[*ENDLESS, *PATTERNS])
def test_what_does_not_end_is_ended(source: str) -> None:
    before = time.process_time()
    assert "it takes more than 0.2 s of CPU time" in reason(source)
    assert time.process_time() - before < 1.5


@pytest.mark.parametrize(("source", "says"), HUGE.values(), ids=HUGE)
def test_what_grows_is_refused(source: str, says: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert says in reason(source)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < limits.MEMORY_MIB


def test_two_seconds_are_enough_for_the_worst() -> None:
    before = time.process_time()
    assert "it takes more than 1.5 s of CPU time" in reason(PATTERNS["stars"])
    assert time.process_time() - before < 2


HELD = """
import resource
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema import limits
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Memory
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql import Evaluator, ExpressionError

limits.MEMORY_MIB, limits.SECONDS = 8, 30
Evaluator({}, Memory())("yaql=1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Evaluator({}, Memory())('yaql=range(9000).select("a" * 9000 + str($)).toList().len()')
except ExpressionError as error:
    print(error)
assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 64
"""


def test_memory_is_limited_where_values_are_not() -> None:
    """Texts within their limit, held all at once, in a process of its own: one that has freed much has that much room."""
    paths = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", HELD], env=paths, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "it takes more than 8 MiB of memory" in done.stdout


@pytest.mark.usefixtures("_short")
def test_the_process_is_as_it_was_before() -> None:
    calls = []
    handler = signal.signal(signal.SIGVTALRM, lambda *_args: calls.append(1))
    address_space = resource.getrlimit(resource.RLIMIT_AS)
    try:
        for source in ("$.ram", "$.nope", ENDLESS["generator"], HUGE["shift"][0]):
            with contextlib.suppress(ExpressionError):
                Evaluator(FACTS, Memory())(f"yaql={source}")
            assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
            assert signal.getsignal(signal.SIGVTALRM) not in (signal.SIG_DFL, signal.SIG_IGN)
            assert resource.getrlimit(resource.RLIMIT_AS) == address_space
        signal.raise_signal(signal.SIGVTALRM)
        assert calls == [1]
    finally:
        signal.signal(signal.SIGVTALRM, handler)


def test_a_limit_of_the_process_that_is_there_already_is_kept() -> None:
    code = (
        "import resource; from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql import Evaluator, Memory\n"
        "Evaluator({'a': 1}, Memory())('yaql=$.a'); resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**34))\n"
        "print(Evaluator({'a': 1}, Memory())('yaql=$.a + 1'), resource.getrlimit(resource.RLIMIT_AS) == (2**33, 2**34))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "2 True\n", done.stderr


def in_thread(work: t.Callable[[], t.Any]) -> t.Any:
    answers: list[t.Any] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()
    thread.join()
    return answers[0] if answers else None


@pytest.mark.usefixtures("_short")
def test_in_a_thread_nothing_of_the_process_is_touched() -> None:
    handler = signal.getsignal(signal.SIGVTALRM)
    assert in_thread(lambda: Evaluator(FACTS, Memory())("yaql=$.disks.id.first()")) == "d0"
    for source in ENDLESS.values():
        assert "CPU time" in in_thread(lambda source=source: reason(source))
    for source, says in HUGE.values():
        assert says in in_thread(lambda source=source: reason(source)) or says == "recursion"
    assert signal.getsignal(signal.SIGVTALRM) is handler


@pytest.mark.parametrize("source", PATTERNS.values(), ids=PATTERNS)
def test_in_a_thread_regular_expressions_are_refused(source: str) -> None:
    assert "cannot be limited outside of the main thread" in in_thread(lambda: reason(source))


@pytest.mark.usefixtures("_short")
def test_the_message_names_the_space_and_the_key() -> None:
    schema = [
        {"id": "os", "type": "partition", "size": "1 GiB"},
        {"id": "data", "type": "partition", "min_size": f"yaql={ENDLESS['generator']}", "disks": f"yaql={HUGE['power'][0]}"},
    ]
    with pytest.raises(InputError) as caught:
        Planner(schema).plan(FACTS)
    told = {mistake.place: mistake.says for mistake in caught.value.mistakes}
    assert set(told) == {"schema[1].min_size", "schema[1].disks"}
    assert "CPU time" in told["schema[1].min_size"]
    assert "4096 bits" in told["schema[1].disks"]


def test_a_fleet_pays_once_for_an_expression_that_does_not_end() -> None:
    planner = Planner([{"id": "data", "type": "partition", "min_size": f"yaql={PATTERNS['stars']}"}])
    before = time.process_time()
    fleet = planner.plan_fleet({f"host{number}": FACTS | {"ram": number} for number in range(1, 21)})
    assert len(fleet.failures) == 20
    assert time.process_time() - before < 3


def test_sets_are_in_the_same_order_in_every_run() -> None:
    source = "$.disks.select([$.id, $.size]).toSet().first() + ['set'] + set(b, a, c).toList() + $.disks.toSet().id.limit(2)"
    assert Evaluator(FACTS, Memory())(f"yaql={source}") == ["d0", 20000, "set", "a", "b", "c", "d0", "d1"]
