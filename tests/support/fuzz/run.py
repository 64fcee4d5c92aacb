# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of targets with damaged inputs: so many of each, by a seed, so that what was found is found again.

    PYTHONPATH=.venv/collections .venv/bin/python tests/support/fuzz/run.py --calls 100000 [--seed 1] [--only ganeti] [--coverage]

With `--coverage` atheris looks for inputs that reach code which no other has reached; the calls are then its.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import traceback
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.bareon.allocator.tests.support.fuzz.targets import Target, all_targets


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
        _guided(targets, arguments.calls * len(targets), arguments.seed)
    total = 0
    for target in targets:
        found = list(findings(target, arguments.calls, arguments.seed))
        total += len(found)
        print(f"{target.name}: {max(1, arguments.calls // target.price)} calls, {len(found)} findings", flush=True)
        for one in found:
            print(f"--- {one.target}\n{one.given!r:.2000}\n{one.said}", flush=True)
    return 1 if total else 0


def _guided(targets: list[Target], calls: int, seed: int) -> t.NoReturn:
    """Let atheris choose the bytes that damages are drawn from; it ends the process, with a code other than 0 where it finds something."""
    import atheris

    pathlib.Path(".build/fuzz").mkdir(parents=True, exist_ok=True)
    atheris.instrument_all()

    def one(data: bytes) -> None:
        draw = random.Random(data)
        found = attempt(targets[(data[0] if data else 0) % len(targets)], draw, seed)
        if found is not None:
            raise RuntimeError(f"{found.target}\n{found.given!r:.2000}\n{found.said}")

    atheris.Setup([sys.argv[0], f"-runs={calls}", f"-seed={seed}", "-max_len=64", "-artifact_prefix=.build/fuzz/"], one)
    atheris.Fuzz()
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
