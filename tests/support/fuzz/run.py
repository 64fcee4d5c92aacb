# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of targets with damaged inputs: so many of each, by a seed, so that what was found is found again.

    PYTHONPATH=.venv/collections .venv/bin/python tests/support/fuzz/run.py --calls 100000 [--seed 1] [--only ganeti] [--coverage]

With `--coverage` atheris chooses the bytes that decide each damage, and keeps those that reach code which no other has reached.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import pathlib
import random
import sys
import tempfile
import traceback
import types
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.bareon.allocator.tests.support.fuzz.mutations import BytesDraw
from ansible_collections.bareon.allocator.tests.support.fuzz.targets import PACKAGE, Target, all_targets

_TURNS = 4
"""How often a target of the lowest price gets a turn for one of the highest."""


@dataclass(frozen=True)
class Finding:
    """An input that ended in an exception that nobody foresaw, and where that was raised."""

    target: str
    seed: int
    given: t.Any
    said: str
    place: str


def findings(target: Target, calls: int, seed: int) -> Iterator[Finding]:
    """Yield what so many calls of a target find, one finding for each place in the code."""
    places = set()
    for number in range(max(1, calls // target.price)):
        found = attempt(target, random.Random(f"{target.name} {seed} {number}"), seed)
        if found is not None and found.place not in places:
            places.add(found.place)
            yield found


def attempt(target: Target, draw: random.Random, seed: int) -> Finding | None:
    """Return what one call finds."""
    given = target.damage(draw, draw.choice(list(target.sound)))
    try:
        target.call(given)
    except Exception as error:
        said = "".join(traceback.format_exception(error))
        return Finding(target.name, seed, given, said, _place(error, said))
    return None


def _place(error: Exception, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith("File ")]
    return f"{type(error).__name__} {lines[-1] if lines else ''}"


def main() -> int:
    """Fuzz what the command line says, and return 1 where there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="how many calls each target gets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the names of targets")
    parser.add_argument("--coverage", action="store_true", help="be guided by coverage, which needs atheris")
    arguments = parser.parse_args()
    targets = [target for target in all_targets() if arguments.only in target.name]
    if arguments.coverage:
        _guided(targets, arguments.calls, arguments.seed)
    total = 0
    for target in targets:
        found = list(findings(target, arguments.calls, arguments.seed))
        total += len(found)
        print(f"{target.name}: {max(1, arguments.calls // target.price)} calls, {len(found)} findings", flush=True)
        for one in found:
            print(f"--- {one.target}\n{one.given!r:.2000}\n{one.said}", flush=True)
    return 1 if total else 0


def _guided(targets: list[Target], calls: int, seed: int) -> t.NoReturn:
    """Let atheris choose the damages until each target has had its calls; ends the process, with code 1 where there are findings."""
    import atheris

    artifacts = pathlib.Path(tempfile.mkdtemp(prefix="bareon-fuzz-inputs-"))
    # Actions freeze what they have imported, and what is frozen is not listed.
    gc.unfreeze()
    known = [one for one in gc.get_objects() if isinstance(one, types.FunctionType)]
    ours = [one for one in known if str(one.__module__).startswith(f"{PACKAGE}.plugins.")]
    for function in ours:
        atheris.instrument_func(function)
    turns = [target for target in targets for _turn in range(max(1, _TURNS // target.price))]
    left = itertools.count(calls * len(turns) // _TURNS, -1)
    places: set[str] = set()

    def one(data: bytes) -> None:
        if next(left) <= 0:
            print(f"{len(places)} findings", flush=True)
            os._exit(1 if places else 0)
        draw = BytesDraw(data)
        found = attempt(draw.choice(turns), draw, seed)
        if found is not None and found.place not in places:
            places.add(found.place)
            print(f"--- {found.target}\n{found.given!r:.2000}\n{found.said}", flush=True)

    print(f"{len(ours)} functions are watched", flush=True)
    atheris.Setup([sys.argv[0], f"-seed={seed}", "-max_len=128", "-len_control=0", f"-artifact_prefix={artifacts}/"], one)
    atheris.Fuzz()
    raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main())
