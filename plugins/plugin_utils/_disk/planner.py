# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the disks of one machine, or of a fleet in which equal problems are solved once."""

from __future__ import annotations

import functools
import math
import re
import traceback
import typing as t
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from ...module_utils._data.containers import read_all
from ...module_utils._data.errors import InputError, Mistake, NoSolution
from ...module_utils._data.kinds import Size
from ...module_utils._data.units import format_mib
from ...module_utils._data.words import listed
from .cautions import preferences_lvm_ignores, warnings_of
from .conflict.refusal import Why, unsaid, why
from .conflict.remedies import Remedy, TooFewDrives, along, followed, naming, with_other_disks
from .existing import is_used
from .fair.other_disks import left_open, on_all_other_disks
from .fair.solve import allocate_fair
from .idle import IdleDisks
from .model import Allocation, Hardware, Schema, Space, SpaceType
from .plan_cache import PlanCache, SharedCache
from .problem.areas import canonical_order
from .problem.boot_partition import with_boot_partition
from .problem.formulate import formulate
from .problem.model import Problem
from .schema.eligible import EligibleKind, kept_names, qualify
from .schema.hardware import parse_hardware, reordered
from .schema.keep import with_existing
from .schema.reader import SchemaReader
from .static.explicit import explicit_schema, sizes_by_disk, whole_disks
from .static.fingerprint import fingerprint

Plan = dict[str, t.Any]


class Objective(StrEnum):
    """What is the best of all plans that break no constraint."""

    FAIR = "fair"
    """Weighted shares, preferences first, as few pieces as possible."""
    ORDERED = "ordered"
    """The seed's program to the letter, where order decides."""


@dataclass(frozen=True)
class Fleet:
    """The plans of the hosts that have one, and why the others have none (InputError or NoSolution), both by host."""

    plans: Mapping[str, Plan]
    failures: Mapping[str, InputError | NoSolution]


@dataclass(frozen=True)
class _Solved:
    """An allocation and the schema it is for, which may have a boot partition more than the given schema."""

    schema: Schema
    allocation: Allocation
    warnings: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Spaces that this plan does not have, each with the reason."""
    disk_ids: tuple[str, ...] = ()
    """The disks of the machine that it was found for."""


@dataclass(frozen=True)
class _Unsolved:
    error: NoSolution
    disk_ids: tuple[str, ...]


_FEW = 3
_TWINS = ("mirror", "alike")
"""Keys that ask for disks alike."""


def parse_reserve(value: t.Any) -> int:
    """Return how many MiB are to be left free per disk, rounded up; text may have a unit. Raises InputError."""
    return int(read_all(Size(math.ceil), value, "reserve"))


class Planner:
    """Plans machine after machine from one dynamic schema. Problems that differ only in names and serials are solved once."""

    def __init__(
        self,
        schema: t.Any,
        objective: Objective = Objective.FAIR,
        reserve: int = 0,
        eligible: Collection[EligibleKind] = (),
        idle: str | None = None,
        shared_cache: SharedCache | None = None,
        keep_existing: bool = False,
    ) -> None:
        """`idle` is what a profile says of disks that it puts nothing on; without it plans do not speak of such disks.

        `keep_existing` keeps what no space names, and plans around it.

        `shared_cache` has what other processes learnt of machines alike, for one that plans few machines itself.
        """
        self._schema = schema
        self._idle = None if idle is None else IdleDisks(schema, idle)
        self._eligible = frozenset(eligible)
        self._kept = kept_names(schema)
        self._objective = objective
        self._reserve = reserve
        self._reader = SchemaReader(schema)
        self._shared_cache = shared_cache
        self._keep_existing = keep_existing
        self._is_trial = False
        self._cache = PlanCache()

    def plan(self, facts: t.Any, place: str = "hardware") -> Plan:
        """Return the plan of one machine as plain data: `fingerprint`, `disks`, `schema`, `warnings`, `left_out_disks`; sizes are MiB.

        That of a profile has `idle_disks` as well. Raises InputError with all mistakes of facts and schema, NoSolution with the conflict.
        """
        everything = parse_hardware(facts, place)
        hardware = qualify(everything, self._eligible, self._kept, place, keep_existing=self._keep_existing)
        if self._objective is Objective.FAIR:
            hardware = reordered(hardware, canonical_order(hardware.disks))
        schema, solved = self._looked_up(hardware)
        identity = fingerprint(everything)
        disks = sizes_by_disk(hardware, solved.schema, solved.allocation)
        whole = whole_disks(hardware, solved.schema)
        idle = {} if self._idle is None else {"idle_disks": self._idle.of(hardware, disks)}
        return {
            "fingerprint": identity,
            "disks": disks,
            "schema": explicit_schema(hardware, solved.schema, solved.allocation, identity),
            "warnings": warnings_of(hardware, solved.schema, solved.allocation, solved.warnings),
            "left_out": [{"id": space_id, "reason": reason} for space_id, reason in (*schema.left_out, *solved.left_out)],
            "left_out_disks": [
                {"disk_id": one.disk.id, "size": one.disk.size, "reason": one.reason, "kinds": list(one.kinds)} for one in hardware.left_out
            ],
            **({"whole_disks": whole} if whole else {}),
            **idle,
        }

    def _looked_up(self, hardware: Hardware) -> tuple[Schema, _Solved]:
        """Return the schema and its solution, found here or by another process for a machine alike. Raises NoSolution."""
        if self._shared_cache is None:
            schema, outcome = self._with_mirrors(hardware)
            return schema, _settled(outcome, hardware)
        options = (self._schema, self._objective, self._reserve, self._keep_existing)
        # Together with what schemas mostly ask of, so that little is looked through under one name.
        asked = (hardware.facts.get("ram"), [(disk.type, disk.facts.get("transport")) for disk in hardware.disks])
        name = repr((options, _shapes(hardware), asked))
        found: tuple[Schema, _Solved | _Unsolved] | None = self._shared_cache.find(name, hardware.facts)
        if found is None:
            found = self._with_mirrors(hardware)
            read_set = self._reader.read_set(hardware, self._cache.memory)
            if read_set is not None:
                self._shared_cache.leave(name, read_set, found)
        return found[0], _settled(found[1], hardware)

    def _with_mirrors(self, hardware: Hardware) -> tuple[Schema, _Solved | _Unsolved]:
        """Return the schema and what it comes to with as many of the mirrors that are wanted where possible as there is room for."""
        alone: list[str] = []
        while True:
            try:
                schema = self._read(hardware, alone)
            except NoSolution as error:
                raise (error if self._is_trial else self._without_twins(error, hardware)) from None
            outcome = self._solved(hardware, schema)
            if isinstance(outcome, _Solved) or not schema.mirrored:
                return schema, outcome
            alone.append(schema.mirrored[-1])

    def _without_twins(self, error: NoSolution, hardware: Hardware) -> NoSolution:
        """Return the error with remedies that were planned, where spaces ask for disks alike that are not there."""
        names = {item["name"].removeprefix("disks:") for item in error.conflict["constraints"]}
        given = {str(entry["id"]): [key for key in _TWINS if entry.get(key)] for entry in self.entries if entry.get("id") in names}
        if not all(given.get(name) for name in names):
            return error
        ids, known = tuple(disk.id for disk in hardware.disks), (str(error), *_shapes(hardware))
        if known not in self._cache.solutions:
            from .conflict.explain import solved_by

            says = tuple(f"plan {name} without {' and '.join(keys)}" for name, keys in given.items())
            way = Remedy(says, keys={name: dict.fromkeys(keys) for name, keys in given.items()})
            remedies = [remedy.words(self.goes_with) for remedy in solved_by(way, _Trial(self, hardware))]
            self._cache.solutions[known] = ids, remedies
        before, remedies = self._cache.solutions[known]
        return NoSolution(str(error), {**error.conflict, "remedies": _renamer(before, ids)(remedies) or error.conflict["remedies"]})

    def _read(self, hardware: Hardware, alone: Collection[str]) -> Schema:
        schema = self._reader.read(hardware, self._cache, alone)
        return with_existing(schema, hardware) if self._keep_existing else schema

    def plan_fleet(self, facts_by_host: Mapping[str, t.Any], unread: Mapping[str, InputError] = MappingProxyType({})) -> Fleet:
        """Return the plans of all machines; one that has none does not keep the others from theirs. `unread` have no facts of use."""
        plans: dict[str, Plan] = {}
        failures: dict[str, InputError | NoSolution] = {**unread}
        for host, facts in facts_by_host.items():
            try:
                plans[host] = self.plan(facts)
            except (InputError, NoSolution) as error:
                failures[host] = error
            except Exception as error:  # pylint: disable=broad-exception-caught
                # A fault of the planner itself as what is wrong with one machine: others of its fleet have plans all
                # the same.
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}:{place.lineno}"
                says = f"cannot be planned because of a fault of the planner ({type(error).__name__} in {where}: {error}); please report it"
                failures[host] = InputError([Mistake("", says)])
        return Fleet(plans, failures)

    def _solved(self, hardware: Hardware, schema: Schema) -> _Solved | _Unsolved:
        """Solve, or take the answer to the same problem of another machine: the same evaluated schema on disks of the same sizes."""
        problem = (schema, *_shapes(hardware))
        solutions: dict[t.Hashable, _Solved | _Unsolved] = self._cache.solutions
        if problem not in solutions:
            ids = tuple(disk.id for disk in hardware.disks)
            try:
                refuse = unsaid if schema.mirrored or self._is_trial else functools.partial(why, trial=_Trial(self, hardware))
                solutions[problem] = replace(self._solve(hardware, schema, self._reserve, refuse), disk_ids=ids)
            except NoSolution as error:
                solutions[problem] = _Unsolved(self._with_reserve(error, hardware, schema), ids)
        return solutions[problem]

    def _solve(self, hardware: Hardware, schema: Schema, reserve: int, refuse: Why) -> _Solved:
        solver = _SOLVERS[self._objective]
        return _solve_what_fits(schema, lambda wanted, say: solver(hardware, wanted, reserve, say), refuse, _NOTHING_LEFT[self._objective])

    @property
    def entries(self) -> Sequence[Mapping[str, t.Any]]:
        """The schema as it is written, of which it is known that it can be read."""
        return t.cast("Sequence[Mapping[str, t.Any]]", self._schema)

    def has_plan(self, hardware: Hardware) -> bool:
        """Return whether there is a plan for a machine, whose facts were read."""
        try:
            return isinstance(self._with_mirrors(hardware)[1], _Solved)
        except (InputError, NoSolution):
            return False

    def least_problem(self, hardware: Hardware) -> Problem | None:
        """Return the problem without anything that is optional; None where there is none."""
        try:
            schema = self._read(hardware, ())
            while schema.mirrored:
                schema = self._read(hardware, [*schema.mirrored])
            schema = _without(schema, [space.id for space in schema.spaces if space.optional])
            if self._objective is Objective.FAIR:
                schema = on_all_other_disks(hardware, schema, self._reserve, unsaid).schema
            problem = formulate(hardware, schema, self._reserve)
        except (InputError, NoSolution):
            return None
        return problem if problem.demands else None

    def with_remedy(self, remedy: Remedy) -> Planner:
        """Return what plans the schema in which a remedy was followed, and says no reasons."""
        other = Planner(followed(remedy, self.entries), self._objective, self._reserve, keep_existing=self._keep_existing)
        other._is_trial = True
        return other

    def goes_with(self, name: str) -> str:
        """Return in brackets which spaces go with one that is left out, and which keys name them."""
        gone = [name, *along([name], self.entries)]
        keys = [f"{key} of {owner}" for key, owner in naming(gone, self.entries)]
        lost = [listed(gone[1:])] if gone[1:] else []
        return f" (with {listed([*lost, *([f'its name in {listed(keys)}'] if keys else [])])})" if lost or keys else ""

    def _with_reserve(self, error: NoSolution, hardware: Hardware, schema: Schema) -> NoSolution:
        """Return the error, with the reserve among its reasons where there is a plan without it."""
        if not self._reserve:
            return error
        try:
            self._solve(hardware, schema, 0, unsaid)
        except NoSolution:
            return error
        says = f"{self._reserve} MiB of every disk stay free (reserve)"
        constraints = [*error.conflict["constraints"], {"name": "reserve", "says": says}]
        remedies = [*error.conflict["remedies"], "reserve less"]
        return NoSolution(f"{error}; {says}", {**error.conflict, "constraints": constraints, "remedies": remedies})


class _Trial:
    """Plans remedies on one machine as users follow them: from the schema as it is written."""

    def __init__(self, planner: Planner, hardware: Hardware) -> None:
        self._planner, self._hardware = planner, hardware

    def helps(self, remedy: Remedy) -> bool:
        """Return whether there is a plan once a remedy was followed."""
        return self._planner.with_remedy(remedy).has_plan(with_other_disks(remedy, self._hardware))

    def after(self, remedy: Remedy) -> Problem | None:
        """Return the problem in which a remedy was followed; None where there is none."""
        return self._planner.with_remedy(remedy).least_problem(with_other_disks(remedy, self._hardware))

    def goes_with(self, name: str) -> str:
        """Return in brackets what changes as well where a space is left out."""
        return self._planner.goes_with(name)

    def ways_out(self, lack: TooFewDrives) -> Sequence[Sequence[Remedy]]:
        """Return what may help a space that needs more drives; of each group the first that helps is enough."""
        # Loaded here, as the reasons are.
        from .conflict.legs import ways_out

        return ways_out(lack, self._planner.entries)


def _settled(outcome: _Solved | _Unsolved, hardware: Hardware) -> _Solved:
    """Return what was found for a machine alike with the names of this one's disks. Raises NoSolution."""
    rename = _renamer(outcome.disk_ids, tuple(disk.id for disk in hardware.disks))
    if isinstance(outcome, _Unsolved):
        conflict = rename(outcome.error.conflict)
        conflict["remedies"] = [*conflict.get("remedies", ()), *_disks_to_take_in(hardware)]
        raise NoSolution(f"{rename(str(outcome.error))}{_never_used(hardware)}", conflict)
    return replace(outcome, left_out=tuple(map(tuple, rename(outcome.left_out)))) if outcome.left_out else outcome


def _shapes(hardware: Hardware) -> tuple[t.Hashable, ...]:
    """Return the facts of a machine that a solution depends on in addition to the evaluated schema."""
    disks = tuple((disk.size, disk.logical_block, disk.physical_block, disk.existing) for disk in hardware.disks)
    return hardware.firmware, hardware.drives, tuple(map(is_used, hardware.disks)), disks


def _solve_ordered(hardware: Hardware, schema: Schema, reserve: int, refuse: Why) -> _Solved:
    # Loaded here, for it is seldom asked for, and Ansible compiles what it loads in every run.
    from .ordered.convert import allocate_ordered

    warnings = list(preferences_lvm_ignores(schema))
    bootable = with_boot_partition(hardware, schema)
    if bootable is not schema:
        warnings.append(
            f"the objective ordered plans no {bootable.spaces[-1].type}, which the {hardware.firmware} firmware needs to start from these"
            " disks; the objective fair does"
        )
    return _Solved(schema, allocate_ordered(hardware, schema, reserve=reserve, refuse=refuse), tuple(warnings))


def _solve_fair(hardware: Hardware, schema: Schema, reserve: int, refuse: Why) -> _Solved:
    settled = on_all_other_disks(hardware, schema, reserve, refuse)
    solved = _with_boot_partition(hardware, settled.schema, reserve, refuse)
    return solved if settled.gap is None else replace(solved, allocation=left_open(solved.allocation, settled.schema, settled.gap))


def _with_boot_partition(hardware: Hardware, schema: Schema, reserve: int, refuse: Why) -> _Solved:
    ignored = tuple(preferences_lvm_ignores(schema))
    bootable = with_boot_partition(hardware, schema)
    if bootable is schema:
        return _Solved(schema, allocate_fair(hardware, schema, reserve=reserve, refuse=refuse), ignored)
    try:
        return _Solved(bootable, allocate_fair(hardware, bootable, reserve=reserve, refuse=unsaid), ignored)
    except NoSolution:
        allocation = allocate_fair(hardware, schema, reserve=reserve, refuse=refuse)
        added = bootable.spaces[-1]
        warning = f"there is no room for the {added.type} that the {hardware.firmware} firmware needs to start from these disks"
        return _Solved(schema, allocation, (*ignored, warning))


_NOTHING_LEFT: Mapping[Objective, str] = {
    Objective.FAIR: "the minimums of others leave no room for it",
    Objective.ORDERED: "it has no minimum, and others take all the room before it",
}


_SOLVERS: Mapping[Objective, Callable[[Hardware, Schema, int, Why], _Solved]] = {
    Objective.FAIR: _solve_fair,
    Objective.ORDERED: _solve_ordered,
}


def _renamer(old: tuple[str, ...], new: tuple[str, ...]) -> Callable[[t.Any], t.Any]:
    """Return what puts disks of one machine in the place of those of another, in texts and all that holds some."""
    if old == new:
        return lambda value: value
    names = dict(zip(old, new, strict=True))

    @functools.cache
    def pattern() -> re.Pattern[str]:
        longest_first = sorted(names, key=len, reverse=True)
        return re.compile(r"(?<![\w/-])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w-])")

    def rename(value: t.Any) -> t.Any:
        if isinstance(value, str):
            return pattern().sub(lambda match: names[match[1]], value)
        if isinstance(value, Mapping):
            return {rename(key): rename(item) for key, item in value.items()}
        return [rename(item) for item in value] if isinstance(value, (list, tuple)) else value

    return rename


def _solve_what_fits(schema: Schema, solve: Callable[[Schema, Why], _Solved], refuse: Why, nothing_left: str) -> _Solved:
    """Solve with as many of the optional spaces as there is room for.

    Those with the highest number of `priority` go first, of equals the last one; what went in vain comes back. `nothing_left` is
    why something may come out at nothing. Raises NoSolution as `refuse` says it when there is no plan without any of them.
    """
    # Nobody sees what would help an optional space.
    in_short = refuse if refuse is unsaid else why
    optional = sorted(
        (at for at, space in enumerate(schema.spaces) if space.optional), key=lambda at: (schema.spaces[at].priority, at), reverse=True
    )
    left: list[str] = []
    reasons: dict[str, str] = {}
    while True:
        with_next = [*left, *(schema.spaces[at].id for at in optional[len(left) : len(left) + 1])]
        is_least = with_next == left or not _without(schema, with_next).spaces
        try:
            solved = solve(_without(schema, left), refuse if is_least else in_short)
            break
        except NoSolution as error:
            if is_least:
                raise
            left = with_next
            reasons[left[-1]] = str(error)
    for space_id in left[-2::-1]:
        try:
            solved = solve(_without(schema, [name for name in left if name != space_id]), in_short)
            left.remove(space_id)
        except NoSolution as error:
            reasons[space_id] = str(error)
    gone = [space.id for space in schema.spaces if space.id in left]
    with_them = {member.id: "vg" for member in schema.spaces if member.volume_group in gone and member.id not in gone}
    with_them |= {member.id: "thin_pool" for member in schema.spaces if member.thin_pool in gone and member.id not in (*gone, *with_them)}
    with_them |= {cache.id: "lv" for cache in schema.spaces if cache.cache_of in (*gone, *with_them) and cache.id not in gone}
    with_them |= {part.id: "zpool" for part in schema.spaces if part.zpool in gone and part.id not in gone}
    said = [(name, f"there is no room for it: {reasons[name].removeprefix('No plan').lstrip(',: ')}") for name in gone]
    said += [(name, f"its {where} is left out") for name, where in with_them.items()]
    return replace(solved, left_out=(*said, *_without_room(solved, nothing_left)))


def _without(schema: Schema, names: Sequence[str]) -> Schema:
    """Return a schema without some spaces and what is in them."""
    if not names:
        return schema
    gone = {space.id for space in schema.spaces if {space.id, space.volume_group, space.thin_pool, space.mirror_of} & set(names)}
    spaces = tuple(
        replace(space, contains=tuple(member for member in space.contains if member not in names))
        for space in schema.spaces
        if space.id not in gone and not {space.cache_of, space.zpool} & gone
    )
    return replace(schema, spaces=spaces)


def _without_room(solved: _Solved, nothing_left: str) -> list[tuple[str, str]]:
    """Return the spaces that came out at nothing, with the reason: they have no minimum. `nothing_left` is why there was no room."""
    spaces, volumes = solved.schema.spaces, solved.allocation.volumes
    there = {piece.space for piece in solved.allocation.pieces if piece.size > 0} | {at for at, size in volumes.items() if size > 0}
    return [
        (space.id, _why_nothing(solved.schema, space, nothing_left))
        for at, space in enumerate(spaces)
        if at not in there and space.thin_pool is None and not (space.type is SpaceType.VOLUME_GROUP and space.contains)
    ]


def _why_nothing(schema: Schema, space: Space, nothing_left: str) -> str:
    if space.volume_group is not None:
        extent = schema.by_id(space.volume_group).extent_size
        if space.max_size is not None and space.max_size < extent:
            return f"its maximum of {space.max_size} MiB is less than an extent of {space.volume_group}, which has {extent} MiB"
    return nothing_left if space.allowed else "no disk of this machine is left for it"


def _disks_to_take_in(hardware: Hardware) -> list[str]:
    return [
        f"use {one.disk.id} ({format_mib(one.disk.size)}), too, which {one.reason}: eligible: [{', '.join(one.kinds)}]"
        for one in hardware.left_out
        if one.kinds
    ]


def _never_used(hardware: Hardware) -> str:
    """Return which disks no plan can use, as a further part of the sentence on why there is none."""
    never = [f"{one.disk.id} {one.reason}" for one in hardware.left_out if not one.kinds]
    more = f"; and {len(never) - _FEW} more" if len(never) > _FEW else ""
    return f"; not usable: {'; '.join(never[:_FEW])}{more}" if never else ""
