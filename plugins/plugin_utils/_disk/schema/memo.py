# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remember what a computation over facts read, and recognise facts that would give the same result.

YAQL takes milliseconds for what a fleet asks of each of its hosts, and most hosts are twins that differ in serial numbers
only. Here facts are handed out as views that note every read. The reads of a computation are questions asked in an order in
which each depends on nothing but the answers before it; so all computations of one expression form a tree of questions, with
answers as branches and results as leaves, and other facts find their result by answering the questions.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

Path = tuple[t.Any, ...]
"""Keys and indices that lead from the whole facts to a value."""


class _Absent(Enum):
    MISSING = "missing"


_DEPTH_OF_DISKS = 2
_MISSING = _Absent.MISSING
_SCALARS = frozenset({str, int, bool, float, type(None)})


class Kind(Enum):
    """What is asked of a place in the facts."""

    VALUE = "value"
    KEYS = "keys"
    LENGTH = "length"


Question = tuple[Kind, Path]
"""What is asked, and of which place."""
_WHOLE = 0
"""The number of the question that nobody needs to ask: what the whole facts are."""
Answers = dict[int, tuple[t.Hashable, t.Any]]
"""By number of the question, each with the part of the facts that it is about."""


@dataclass(frozen=True)
class Place:
    """Stands in a result for a mapping or a list of the facts."""

    path: Path


@dataclass(frozen=True, eq=False)
class Remembered:
    """A result, with places where it has parts of the facts."""

    value: t.Any


@dataclass
class _Node:
    """A question and what comes after each answer; a result instead at the end."""

    question: Question | None = None
    number: int = 0
    """Of the question, whichever computation asks it."""
    container: int = 0
    """The number of the question that led to what this one is about: nothing is read that was not found before."""
    result: Remembered | None = None
    after: dict[t.Hashable, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadSet:
    """Everything that some computations read of facts, each value after its container.

    Facts with all of these values give the same results.
    """

    reads: tuple[tuple[int, Question, t.Hashable], ...]
    """Each as the number of the read that gave the container (0: the whole facts), the question, and the answer."""

    def hold(self, facts: Mapping[str, t.Any]) -> bool:
        """Return whether other facts have all that was read."""
        found: list[t.Any] = [facts]
        for container, question, answer in self.reads:
            given, value = _answer(found[container], question)
            if given != answer:
                return False
            found.append(value)
        return True


class Memory:
    """Results of computations by name and by what they read."""

    def __init__(self) -> None:
        self._roots: dict[str, _Node] = {}
        self._numbers: dict[Question, int] = {(Kind.VALUE, ()): _WHOLE}

    def compute(self, name: str, facts: Mapping[str, t.Any], compute: Callable[[t.Any], t.Any]) -> t.Any:
        """Return `compute(facts)`, or what it gave for facts in which all that it read was the same.

        `compute` must read nothing but the facts. Its result is built of plain values, lists and mappings; parts of the facts
        in it are those of the facts given here, to be read only.
        """
        known = self.recall(name, facts)
        return self._learn(name, facts, compute) if known is None else _filled_in(known.value, facts)

    def recall(self, name: str, facts: Mapping[str, t.Any], answers: Answers | None = None) -> Remembered | None:
        """Return what is known of a computation over these facts: the same object for all facts that answer its questions alike.

        `answers` keeps what was asked of these facts before.
        """
        answers = {} if answers is None else answers
        answers[_WHOLE] = (_MappingView, facts)
        node = self._roots.get(name)
        while node is not None and node.question is not None:
            known = answers.get(node.number)
            if known is None:
                known = answers[node.number] = _answer(answers[node.container][1], node.question)
            node = node.after.get(known[0])
        return None if node is None else node.result

    def read_set(self, names: Iterable[str], facts: Mapping[str, t.Any]) -> ReadSet:
        """Return what the computations of these names, all of them known, read of these facts."""
        numbers, reads = {_WHOLE: 0}, []
        for name in names:
            node = self._roots[name]
            while node.question is not None:
                kind, path = node.question
                answer, _value = _answer(_at(facts, _container(node.question)[1]), node.question)
                if node.number not in numbers:
                    reads.append((numbers[node.container], (kind, path[-1:]), answer))
                    numbers[node.number] = len(reads)
                node = node.after[answer]
        return ReadSet(tuple(reads))

    def _learn(self, name: str, facts: Mapping[str, t.Any], compute: Callable[[t.Any], t.Any]) -> t.Any:
        questions: dict[Question, t.Hashable] = {}
        result = _detached(compute(_view(facts, (), questions)))
        node = self._roots.setdefault(name, _Node())
        for question, answer in questions.items():
            node.question = question
            node.number = self._numbers.setdefault(question, len(self._numbers))
            node.container = self._numbers[_container(question)]
            node = node.after.setdefault(answer, _Node())
        node.result = Remembered(result)
        return _filled_in(result, facts)


class MissingFactError(KeyError):
    """A key that the facts do not have; `of_disk` says whether it is a disk that has it not."""

    def __init__(self, key: t.Any, path: Path) -> None:
        super().__init__(key)
        self.of_disk = len(path) == _DEPTH_OF_DISKS and path[0] == "disks"


class _MappingView(Mapping[t.Any, t.Any]):
    def __init__(self, value: Mapping[t.Any, t.Any], path: Path, questions: dict[Question, t.Hashable]) -> None:
        self._value, self.path, self._questions = value, path, questions

    def __getitem__(self, key: t.Any) -> t.Any:
        path = (*self.path, key)
        value = self._value.get(key, _MISSING)
        self._questions[Kind.VALUE, path] = _sign(value)
        if value is _MISSING:
            raise MissingFactError(key, self.path)
        return _view(value, path, self._questions)

    def __repr__(self) -> str:
        return _spelled(self.path)

    def __iter__(self) -> Iterator[t.Any]:
        self._questions[Kind.KEYS, self.path] = tuple(self._value)
        return iter(self._value)

    def __len__(self) -> int:
        self._questions[Kind.LENGTH, self.path] = len(self._value)
        return len(self._value)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))


class _ListView(Sequence[t.Any]):
    def __init__(self, value: Sequence[t.Any], path: Path, questions: dict[Question, t.Hashable]) -> None:
        self._value, self.path, self._questions = value, path, questions

    def __getitem__(self, index: t.Any) -> t.Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index if index >= 0 else len(self) + index
        path = (*self.path, position)
        value = self._value[position] if 0 <= position < len(self._value) else _MISSING
        self._questions[Kind.VALUE, path] = _sign(value)
        if value is _MISSING:
            raise IndexError(index)
        return _view(value, path, self._questions)

    def __len__(self) -> int:
        self._questions[Kind.LENGTH, self.path] = len(self._value)
        return len(self._value)

    def __repr__(self) -> str:
        return _spelled(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def _spelled(path: Path) -> str:
    """Return where a part of the facts is, as an expression has it."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _view(value: t.Any, path: Path, questions: dict[Question, t.Hashable]) -> t.Any:
    if isinstance(value, Mapping):
        return _MappingView(value, path, questions)
    if isinstance(value, (list, tuple)):
        return _ListView(value, path, questions)
    return value


def _sign(value: t.Any) -> t.Hashable:
    """Return a key that differs between values: containers by their kind only, for reads of their items are recorded on their own."""
    kind = value.__class__
    if kind in _SCALARS:
        return (kind is bool, kind is float, value)
    if kind is _Absent:
        # The class, as Python hashes the members of an enum slowly.
        return _Absent
    if kind is dict or isinstance(value, Mapping):
        return _MappingView
    if isinstance(value, (list, tuple)):
        return _ListView
    return (isinstance(value, bool), isinstance(value, float), value)


def _container(question: Question) -> Question:
    kind, path = question
    return Kind.VALUE, path[:-1] if kind is Kind.VALUE else path


def _answer(container: t.Any, question: Question) -> tuple[t.Hashable, t.Any]:
    """Return the answer to a question about what is in a mapping or a list, and what it is about."""
    kind, path = question
    if kind is Kind.VALUE:
        value = _step(container, path[-1])
        return _sign(value), value
    return tuple(container) if kind is Kind.KEYS else len(container), container


def _at(facts: t.Any, path: Path) -> t.Any:
    value = facts
    for step in path:
        value = _step(value, step)
    return value


def _step(value: t.Any, step: t.Any) -> t.Any:
    # Facts are dicts and lists nearly always, and to ask for the class costs a tenth of asking for the kind.
    kind = value.__class__
    if kind is dict or (kind is not list and isinstance(value, Mapping)):
        return value.get(step, _MISSING)
    if isinstance(value, (list, tuple)) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return _MISSING


def _detached(value: t.Any) -> t.Any:
    """Return the result with places of the facts instead of views."""
    if isinstance(value, (_MappingView, _ListView)):
        return Place(value.path)
    if isinstance(value, Mapping):
        return {key: _detached(item) for key, item in value.items()}
    return [_detached(item) for item in value] if isinstance(value, (list, tuple)) else value


def _filled_in(value: t.Any, facts: t.Any) -> t.Any:
    if isinstance(value, Place):
        found = _at(facts, value.path)
        return MappingProxyType(found) if isinstance(found, dict) else found
    if isinstance(value, dict):
        return {key: _filled_in(item, facts) for key, item in value.items()}
    return [_filled_in(item, facts) for item in value] if isinstance(value, list) else value
