# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Break spots of the code by a seed, one at a time, and tell which of them no test notices.

    make mutants
    PYTHONPATH=.venv/collections .venv/bin/python tests/utils/mutants.py [--seed 1] [--count 100] [--room group] [--quick] [--jobs 1]

A spot is a comparison, a condition, a number, a sum, a call of min, max or sorted. For each the tests that belong to the broken file run
until the first one fails: the unit tests beside it, those that import it, those of its room that reach it by imports, and the property
tests that do. Tests that need more seconds of CPU than --patience count as failed, for an endless loop is noticed as well.

Everything happens in copies of the checkout. It is a measure to look at, not a gate: some breaks change nothing that anybody can see.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import contextlib
import dataclasses
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import typing as t
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.house.imports import COLLECTION, ROOMS, ROOT, imports, room_of, source_files

Place = tuple[str, ...]
COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SUMS = {ast.Add: "-", ast.Sub: "+"}
SWAPPED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
}
RUN = """
import resource, sys, pytest
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
sys.exit(pytest.main(sys.argv[2:]))
"""
NO_TESTS = 5
"""The status with which pytest says that it found no tests."""


@dataclasses.dataclass(frozen=True)
class Spot:
    """A piece of a file, and what stands there when it is broken."""

    place: Place
    path: Path
    start: int
    end: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {_short(self.before)} -> {_short(self.after)}"


def _short(text: str, most: int = 70) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}..."


def spots_of(place: Place, path: Path) -> Iterator[Spot]:
    """Yield every spot of a file that can be broken, in the file's order of nodes."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(text)
    skipped = {id(inner) for node in ast.walk(tree) for outer in _untouched(node) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for old, new in _breaks(node):
            span = (starts[old.lineno - 1] + old.col_offset, starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0))
            yield Spot(place, path, *span, old.lineno, text.encode()[slice(*span)].decode(), new)


def _untouched(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what no test can be asked to notice: annotations, messages, and what decorators are told."""
    for name in ("annotation", "returns"):
        if getattr(node, name, None) is not None:
            yield getattr(node, name)
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):
        yield node
    yield from getattr(node, "decorator_list", [])


def _breaks(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions to replace, with what replaces them."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield node, f"({ast.unparse(node.left)} {COMPARISONS[type(node.ops[0])]} {ast.unparse(node.comparators[0])})"
    elif isinstance(node, ast.BoolOp):
        other = " or " if isinstance(node.op, ast.And) else " and "
        yield node, f"({other.join(f'({ast.unparse(value)})' for value in node.values)})"
        yield node, _without(node, 0)
        yield node, _without(node, len(node.values) - 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"bool({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        yield node, f"({ast.unparse(node.left)} {SUMS[type(node.op)]} {ast.unparse(node.right)})"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node.value, int):
            yield node, str(node.value + 1)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield condition, "True"
    elif isinstance(node, ast.Call):
        yield from _broken_calls(node)


def _broken_calls(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SWAPPED:
        yield node.func, ast.unparse(node.func).removesuffix(name) + SWAPPED[name]
    elif name == "sorted" and node.args:
        yield node, f"list({ast.unparse(node.args[0])})"


def _without(node: ast.BoolOp, number: int) -> str:
    """Return a condition of several without one of them."""
    left = [value for position, value in enumerate(node.values) if position != number]
    joint = " and " if isinstance(node.op, ast.And) else " or "
    return f"({joint.join(f'({ast.unparse(value)})' for value in left)})"


class Tests:
    """Which tests belong to a file."""

    def __init__(self) -> None:
        self._below: dict[Place, set[Place]] = {place: set() for place in source_files()}
        for found in imports():
            if found.target is not None:
                self._below[found.source.relative_to(ROOT / "plugins").with_suffix("").parts].add(found.target)
        tests = sorted([*(ROOT / "tests/unit/plugins").rglob("test_*.py"), *(ROOT / "tests/property").rglob("test_*.py")])
        self._direct = {path: self._imported(path) for path in tests}
        self._reached = {path: self._reachable(direct) for path, direct in self._direct.items()}

    def of(self, place: Place, quick: bool) -> list[str]:
        """Return the tests of a file, the nearest first; when it must be quick, none of properties."""
        beside = ROOT / "tests/unit/plugins" / Path(*place)
        near = [beside.with_name(f"test_{beside.name}.py")]
        folder = [path for path in self._direct if path.parent == beside.parent]
        importing = [path for path, direct in self._direct.items() if place in direct]
        reaching = [path for path in self._direct if place in self._reached[path]]
        of_room = [path for path in reaching if room_of(place) in path.parts and "property" not in path.parts]
        properties = [path for path in reaching if "property" in path.parts]
        ordered = dict.fromkeys([*near, *(path for path in importing if path in folder), *importing, *folder, *of_room, *properties])
        if quick:
            ordered = dict.fromkeys(path for path in ordered if "property" not in path.parts)
        return [str(path.relative_to(ROOT)) for path in ordered if path.exists()]

    def _imported(self, path: Path) -> set[Place]:
        """Return what a test imports of `plugins`, itself or by what it shares with other tests."""
        found: set[Place] = set()
        todo, seen = [path], {path}
        while todo:
            for node in ast.walk(ast.parse(todo.pop().read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(COLLECTION):
                    continue
                parts = tuple(node.module.removeprefix(COLLECTION).split("."))
                choices = [parts, *((*parts, alias.name) for alias in node.names)]
                found |= {choice[1:] for choice in choices if choice[1:] in self._below}
                shared = {ROOT.joinpath(*choice).with_suffix(".py") for choice in choices if choice[0] == "tests"}
                todo += sorted(file for file in shared - seen if file.exists())
                seen |= shared
        return found

    def _reachable(self, direct: set[Place]) -> set[Place]:
        found, todo = set(direct), list(direct)
        while todo:
            new = self._below[todo.pop()] - found
            found |= new
            todo += new
        return found


@contextlib.contextmanager
def copies(count: int) -> Iterator[queue.Queue[Path]]:
    """Make copies of the checkout, each with links to the collections that tests need."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: queue.Queue[Path] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(count):
            copy = Path(folder, str(number))
            for name in listed.stdout.splitlines():
                if (ROOT / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, copy / name)
            _link_collections(copy)
            found.put(copy)
        yield found


def _link_collections(copy: Path) -> None:
    """Let the copy find itself, and the other collections where this checkout has them."""
    here, there = (root / ".venv" / "collections" / "ansible_collections" for root in (ROOT, copy))
    (there / "bareon").mkdir(parents=True)
    (there / "bareon" / "allocator").symlink_to(copy)
    for other in here.iterdir():
        if other.name != "bareon":
            (there / other.name).symlink_to(other.resolve())
    (copy / ".venv" / "bin").symlink_to(ROOT / ".venv" / "bin")


def fails(copy: Path, tests: t.Sequence[str], patience: int) -> bool:
    """Return whether one of these tests fails in a copy."""
    command = [sys.executable, "-c", RUN, str(patience), "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
    # Bytecode is known by its size and second: two breaks of one second would be one.
    surroundings = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    surroundings.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=copy, env=surroundings, capture_output=True, text=True, check=False)
    return done.returncode not in {0, NO_TESTS}


def is_sound(tests: t.Sequence[str], free: queue.Queue[Path], patience: int) -> bool:
    """Tell whether tests pass where nothing is broken, so that one that fails says something."""
    copy = free.get()
    try:
        return not fails(copy, tests, patience)
    finally:
        free.put(copy)


def is_caught(spot: Spot, tests: t.Sequence[str], free: queue.Queue[Path], patience: int) -> bool:
    """Break one spot in a copy that is free, and put it right again."""
    copy = free.get()
    broken = copy / spot.path.relative_to(ROOT)
    sound = broken.read_bytes()
    try:
        broken.write_bytes(sound[: spot.start] + spot.after.encode() + sound[spot.end :])
        return bool(tests) and fails(copy, tests, patience)
    finally:
        broken.write_bytes(sound)
        free.put(copy)


def chosen(seed: int, count: int, room: str | None, path: str | None) -> list[Spot]:
    """Return spots by a seed; the same seed gives the same ones as long as the code stays."""
    files = {place: file for place, file in source_files().items() if room_of(place) and room in (None, room_of(place))}
    spots = [spot for place, file in files.items() if path is None or path in str(file) for spot in spots_of(place, file)]
    return random.Random(seed).sample(spots, min(count, len(spots)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="how many spots to break")
    parser.add_argument("--room", choices=ROOMS, help="break this room only")
    parser.add_argument("--path", help="break only files with this in their path")
    parser.add_argument("--quick", action="store_true", help="run unit tests only, no property tests")
    parser.add_argument("--jobs", type=int, default=1, help="how many copies to try in at a time")
    parser.add_argument("--patience", type=int, default=900, help="seconds of CPU that the tests of one spot may take")
    options = parser.parse_args()
    tests = Tests()
    spots = chosen(options.seed, options.count, options.room, options.path)
    survived = []
    with copies(options.jobs) as free, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        if spots and not is_sound(tests.of(spots[0].place, options.quick), free, options.patience):
            parser.exit(1, "Tests fail, or cannot run, where nothing is broken: no spot would count.\n")
        tried = pool.map(lambda spot: is_caught(spot, tests.of(spot.place, options.quick), free, options.patience), spots)
        for spot, caught in zip(spots, tried):
            print(f"{'caught  ' if caught else 'SURVIVED'} {spot}", flush=True)
            survived += [] if caught else [spot]
    print(f"\n{len(spots) - len(survived)} of {len(spots)} caught (seed {options.seed})")
    for spot in sorted(survived, key=str):
        print(f"survived: {spot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
