# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan, in words: a minimal set of named constraints, how many MiB short, and what would help."""

from __future__ import annotations

import functools
import math
import typing as t
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.units import with_percentage
from ....module_utils._data.words import listed
from ....module_utils._storage import lvm
from ..problem.model import Demand, Kind, Pool, Problem
from .contradiction import minimal_conflict, needed_restrictions
from .least import least_to_give_up, least_to_grow, least_to_lower
from .remedies import FromTo, Remedy, TooFewDrives, Trial, Untried
from .shortage import Sums

_FEW = 4
_NAMED = 3
_MOST_PLANNED = 8
"""How many relations are given up in remedies that are planned."""
_MOST_CONFLICTS = 3
"""How many conflicts a message has."""
_MOST_SOLVED = 8
"""How many conflicts are solved together."""
_ROUNDS = 8
"""How often a remedy is made larger."""


@dataclass(frozen=True)
class Reason:
    """A sentence and the data of a conflict: `short` (MiB or None), `constraints` [{name, says}], `remedies` [sentence], `further`.

    `further` are the conflicts that stay once this one is solved, each with `short` and `constraints`; a remedy solves them all.
    """

    message: str
    data: Mapping[str, t.Any]


@dataclass(frozen=True)
class _Conflict:
    """Its sentence and what the sentence begins with, `short` and `constraints` as in a reason, and remedies: what helps, what does not."""

    says: str
    missing: str
    short: int | None
    said: Sequence[Mapping[str, str]]
    remedies: Sequence[Remedy]
    in_vain: Sequence[Remedy] = ()

    @property
    def data(self) -> dict[str, t.Any]:
        """What a result says of the conflict."""
        return {"short": self.short, "constraints": self.said}

    @property
    def without(self) -> Remedy:
        """The remedy that gives up whatever is in the conflict."""
        return Remedy(
            gone=tuple(dict.fromkeys(item["name"].split(":", 1)[1] for item in self.said if not item["name"].startswith("disk:")))
        )


def explain(problem: Problem, trial: Trial | None = None) -> Reason:
    """Return why a problem has no plan. Where a limit ended the search for fewer constraints, the sentence says so.

    Remedies after which the trial finds no plan are not shown.
    """
    trial = trial or Untried()
    (first, *further), remedies = _explained(problem, trial, Remedy(), _MOST_SOLVED)
    further = further[: _MOST_CONFLICTS - 1]
    says = [first.says, *(f"{other.missing.removeprefix(', ')}: {other.says}".removeprefix(": ") for other in further)]
    shown = [remedy.words(trial.goes_with) for remedy in remedies]
    data = {**first.data, "remedies": shown, "further": [other.data for other in further]}
    return Reason(f"No plan{first.missing}: {'; once this is solved, '.join(says)}", data)


def solved_by(way: Remedy, trial: Trial) -> Sequence[Remedy]:
    """Return what solves a conflict that is known from the schema alone: a way out, and what else has to be done."""
    if trial.helps(way):
        return [way]
    rest = trial.after(way)
    more = [] if rest is None else _explained(rest, trial, way, _MOST_SOLVED - 1)[1]
    return [way.and_then(other) for other in more if other.is_exact]


def _explained(problem: Problem, trial: Trial, done: Remedy, most: int) -> tuple[Sequence[_Conflict], Sequence[Remedy]]:
    """Return a conflict of what is left when some things were done, with up to `most` - 1 others, and what solves them together."""
    first = _without_disks(problem) or _conflict(problem, trial, done)
    if most == 1 or any(remedy.is_exact for remedy in first.remedies):
        return [first], first.remedies
    without = first.without
    for way in (*first.in_vain, without):
        if trial.helps(done.and_then(way)):
            return [first], first.remedies or [way]
        rest = trial.after(done.and_then(way))
        others, more = ([], []) if rest is None else _explained(rest, trial, done.and_then(way), most - 1)
        if more and others[0].said != first.said:
            ways = first.remedies if way is without and first.remedies else [way]
            return [first, *others], [one.and_then(other) for one in ways for other in more]
    return [first], first.remedies


def _conflict(problem: Problem, trial: Trial, done: Remedy) -> _Conflict:
    """Return one conflict of a problem."""
    sums = Sums(problem)
    constraints, minimal = minimal_conflict(problem, sums)
    given_up = least_to_give_up(problem, constraints, sums)
    short = None if given_up is None else sum(mib * _times(problem, name, constraints) for name, mib in given_up.mib.items())
    said = [{"name": name, "says": _message(problem, name)} for name in constraints]
    said += _restrictions(problem, constraints)
    ways = [functools.partial(_lowered, constraints), functools.partial(_larger, constraints)]
    tried = [found for way in ways if (found := _until_it_helps(problem, way, trial, done))]
    relaxed = _relaxed(problem, constraints)
    tried += [(remedy, trial.helps(done.and_then(remedy))) for remedy in relaxed[:_MOST_PLANNED]]
    lacking = [
        demand for demand in problem.demands if f"legs:{demand.name}" in constraints and len(problem.drives_of(demand.areas)) < demand.legs
    ]
    tried += [found for demand in lacking for found in _with_other_legs(problem, demand, trial, done)]
    shown = [remedy for remedy, does_help in tried if does_help] or [_more_or_fewer(problem, demand) for demand in lacking]
    missing = "" if given_up is None else f", {'' if given_up.proven else 'at most '}{short} MiB short"
    doubt = "" if minimal else " (the search ended early, so some of this may not matter)"
    says = f"{'; '.join([*_sentences(problem, said), *_others_need(problem, constraints, short)])}{doubt}"
    return _Conflict(says, missing, short, said, shown, [remedy for remedy, does_help in tried if not does_help])


def _until_it_helps(problem: Problem, way: Callable[[Problem, float], Remedy], trial: Trial, done: Remedy) -> tuple[Remedy, bool] | None:
    """Return what a way finds, and more as long as percentages of what is left ask for more, and whether that helps."""
    first = remedy = more = way(problem, 1.0)
    if not first.is_exact:
        return None
    before, scale = float(more.amount), 1.0
    for _round in range(_ROUNDS):
        if trial.helps(done.and_then(remedy)):
            return remedy, True
        rest = trial.after(done.and_then(remedy))
        more = Remedy() if rest is None else way(rest, scale)
        # What grows with each round as the first did would never do; else the sum of all rounds to come is known from two.
        ratio = more.amount / scale / before
        if not more.amount or ratio >= 1:
            break
        before, scale = more.amount / scale, 1 / (1 - ratio)
        remedy = remedy.and_then(more)
    return first, False


def _times(problem: Problem, name: str, constraints: Sequence[str]) -> int:
    """Return how many partitions on one disk of a conflict have a minimum, each of which lacks what the minimum does."""
    demand = next((own for own in problem.demands if f"min:{own.name}" == name and own.kind is Kind.SINGLE), None)
    return 1 if demand is None or name not in constraints else max(1, _on_same_disk(problem, demand))


def _on_same_disk(problem: Problem, demand: Demand) -> int:
    return sum(other.name == demand.name and other.kind is Kind.SINGLE and other.areas == demand.areas for other in problem.demands)


def _others_need(problem: Problem, constraints: Sequence[str], short: int | None) -> list[str]:
    """Return the sentence on spaces that are in no conflict by themselves, but part of what is short in all."""
    subjects: dict[str, set[str]] = {}
    for name in constraints:
        kind, _colon, subject = name.partition(":")
        subjects.setdefault(kind, set()).add(subject)
    if short is None or not subjects.keys() <= {"min", "disk", "one_disk"}:
        return []
    disks = subjects.get("disk", set())
    room = sum(area.size for area in problem.areas if problem.disk_names[area.disk] in disks)
    blamed = subjects.get("min", set())
    others = dict.fromkeys(
        demand.name for demand in problem.demands if demand.space is not None and demand.lo and demand.name not in blamed
    )
    needs = {name: _least_of(problem, name) for name in (*blamed, *others)}
    if not others or sum(needs.values()) - room != short:
        return []
    return [f"in addition, the minimums of {listed(list(others), _FEW)} take {sum(needs[name] for name in others)} MiB"]


def _without_disks(problem: Problem) -> _Conflict | None:
    """Return the conflict when what must be made may use no disk at all."""
    restricted = dict(problem.restrictions)
    lost = [demand for demand in problem.demands if demand.kind is not Kind.VOLUME and not demand.areas and demand.space is not None]
    lost_names = [demand.name for demand in lost if demand.lo > 0]
    for pool in problem.pools:
        needed = pool.lo > 0 or any(problem.demands[at].lo > 0 for at in pool.volumes)
        if needed and not pool.areas and not pool.arrays and not pool.kept:
            lost_names.append(pool.name)
    said = [{"name": f"disks:{name}", "says": f"{restricted[name]} names no disk for {name}"} for name in lost_names if name in restricted]
    if not said:
        return None
    uses = [f"let {item['name'].split(':', 1)[1]} use disks that this machine has" for item in said]
    return _Conflict("; ".join(item["says"] for item in said), "", None, said, [Remedy((listed(uses),))])


def _restrictions(problem: Problem, constraints: Sequence[str]) -> list[dict[str, str]]:
    """Return `disks:` of those in a conflict that may not use all disks: with these out of the way there would be more room."""
    restricted = dict(problem.restrictions)
    involved = dict.fromkeys(name.split(":", 1)[1] for name in constraints if not name.startswith("disk:"))
    contradictory = any(name.startswith("max:") and f"min:{name[4:]}" in constraints for name in constraints) and len(constraints) == 2
    drives = _count_drives(problem)
    # What needs more disks than there are lies nowhere, whichever it may use.
    too_many = {demand.name for demand in problem.demands if demand.kind is Kind.LEGS and demand.legs > drives}
    asked = [] if contradictory else [name for name in involved if name in restricted and name not in too_many]
    found = []
    for name in needed_restrictions(problem, constraints, asked):
        areas = {area for demand in problem.demands if demand.name == name for area in demand.areas}
        areas |= {area for pool in problem.pools if pool.name == name for area in pool.areas}
        areas |= {area for boot in problem.boot_partitions if boot.name == name for area, _size in boot.sizes}
        disks = sorted({problem.disk_names[problem.areas[area].disk] for area in areas})
        found.append({"name": f"disks:{name}", "says": f"{name} may use {listed(disks, _FEW)} only ({restricted[name]})"})
    return found


def _message(problem: Problem, name: str) -> str:
    kind, subject = name.split(":", 1)
    if kind == "disk":
        return _disk_message(problem, subject)
    if kind in ("apart", "together"):
        others = _others(problem, name)
        if kind == "together":
            return f"{subject} lies only on disks of {others}"
        parties = [party for relation in problem.relations if relation.constraint == name for party in (relation.one, relation.other)]
        demands = [problem.demands[at].areas for party in parties for at in party.demands]
        areas = {area for own in (*demands, *(problem.pools[at].areas for party in parties for at in party.pools)) for area in own}
        return (
            f"{subject} shares no {'drive' if problem.drives else 'disk'} with {others}{_on_one_drive(problem, problem.drives_of(areas))}"
        )
    for pool in problem.pools:
        if pool.name == subject and (kind in ("vgcap", "max_pvs") or (pool.is_group and kind in ("min", "max"))):
            return _pool_message(problem, pool, kind)
    for boot_partition in problem.boot_partitions:
        if boot_partition.name == subject:
            least = max((size for _area, size in boot_partition.sizes), default=0)
            if kind == "boot":
                return f"every disk that boots needs its own {boot_partition.name}"
            return f"{boot_partition.name} needs {with_percentage(least, boot_partition.percentage)} on every disk that boots"
    demand = next(demand for demand in problem.demands if demand.name == subject and demand.space is not None)
    if kind == "legs":
        return _legs_message(problem, demand)
    return f"{_demand_message(demand, kind)}{_on_each_disk(problem, demand) if kind in ('min', 'max') else ''}"


def _on_each_disk(problem: Problem, demand: Demand) -> str:
    """Return that bounds are those of each of several partitions on a disk."""
    there = _on_same_disk(problem, demand)
    return f" for each of its {there} partitions on a disk" if there > 1 else ""


def _others(problem: Problem, name: str) -> str:
    """Return the spaces that a space shares no disk with, or lies with."""
    return listed([relation.other_name for relation in problem.relations if relation.constraint == name], _FEW)


def _disk_message(problem: Problem, disk: str) -> str:
    position = problem.disk_names.index(disk)
    free = sum(area.size for area in problem.areas if area.disk == position)
    only = {pool.metadata_size for pool in problem.pools if pool.metadata_size}
    extents = {pool.extent_size for pool in problem.pools if pool.metadata_size}
    if (
        only
        and len(extents) == 1
        and not any(demand.kind is Kind.SINGLE or demand.kind is Kind.LEGS for demand in problem.demands)
        and not problem.boot_partitions
    ):
        (extent,) = extents
        in_extents = sum(lvm.pv_extents(area.size, min(only), extent) * extent for area in problem.areas if area.disk == position)
        return f"disk {disk} holds {in_extents} MiB in extents ({free} MiB without its partition table)"
    kept = [(name, piece.size) for name, piece in zip(problem.kept_names, problem.kept) if piece.disk == position]
    stays = f"{listed([name for name, _size in kept])} ({sum(size for _name, size in kept)} MiB)"
    kept_words = f" in addition to {stays}, which stays" if kept else ""
    return f"disk {disk} holds {free} MiB{kept_words}"


def _pool_message(problem: Problem, pool: Pool, kind: str) -> str:
    members = ", ".join(problem.demands[volume].name for volume in pool.volumes if problem.demands[volume].space is not None)
    return {
        "vgcap": f"the vg {pool.name} must hold {members}",
        "max_pvs": f"the vg {pool.name} may be on {pool.max_pvs} {'disk' if pool.max_pvs == 1 else 'disks'} at most",
        "min": f"the vg {pool.name} needs at least {with_percentage(pool.lo, pool.percentages[0])}",
        "max": f"the vg {pool.name} may have {with_percentage(pool.hi or 0, pool.percentages[1])} at most",
    }[kind]


def _demand_message(demand: Demand, kind: str) -> str:
    if kind == "min":
        own = f", and {demand.own} more for {demand.own_for}" if demand.own else ""
        return f"{demand.name} needs at least {with_percentage(demand.lo - demand.own, demand.percentages[0])}{own}"
    if kind == "max":
        most = demand.hi or 0
        most = most if demand.data_in is None else demand.data_in(most)
        return f"{demand.name} may have {with_percentage(most, demand.percentages[1])} at most"
    return f"{demand.name} must lie on one disk"


def _on_one_drive(problem: Problem, drives: Collection[int]) -> str:
    """Return which disks on some drives fail together, in brackets."""
    names: dict[int, list[str]] = {}
    for disk, drive in enumerate(problem.drives):
        names.setdefault(drive, []).append(problem.disk_names[disk])
    shared = [f"{listed(own, _FEW)} are on one drive and fail together" for drive, own in names.items() if len(own) > 1 and drive in drives]
    return f" ({'; '.join(shared[:_NAMED])})" if shared else ""


def _legs_message(problem: Problem, demand: Demand) -> str:
    drives = problem.drives_of(demand.areas)
    may_use = f"may use {len(drives)}{_on_one_drive(problem, drives)}"
    if demand.copies:
        return f"{demand.name} is wanted {len(demand.copies)} times and needs {demand.legs} disks, and {may_use}"
    standing_by = f", {demand.spares} of them as spares," if demand.spares else ""
    return f"{demand.name} needs {demand.legs} disks{standing_by or ','} and {may_use}"


def _sentences(problem: Problem, said: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the sentences of a message: many disks become one, so do many minimums, and many that must lie on one disk each."""
    disks = [item["name"].split(":", 1)[1] for item in said if item["name"].startswith("disk:")]
    minimums = [item for item in said if item["name"].startswith("min:")]
    whole = [item["name"].split(":", 1)[1] for item in said if item["name"].startswith("one_disk:")]
    many = {kind for kind, count in (("disk", len(disks)), ("min", len(minimums)), ("one_disk", len(whole))) if count > _FEW}
    # What is said of the sum makes up for what is said of each.
    many_too = {"vgcap", "disks", "legs"} if "min" in many else set()
    sentences = [item["says"] for item in said if item["name"].split(":", 1)[0] not in many | many_too]
    if "min" in many:
        needs = {item["name"].split(":", 1)[1]: _least_of(problem, item["name"].split(":", 1)[1]) for item in minimums}
        largest = sorted(needs, key=lambda name: -needs[name])[:_NAMED]
        named = ", ".join(f"{name} ({needs[name]} MiB)" for name in largest)
        sentences.append(f"{len(needs)} spaces need {sum(needs.values())} MiB in all, most of them {named}")
    if "one_disk" in many:
        sentences.append(f"{listed(whole, _NAMED)} must each lie on one disk")
    if "disk" in many:
        sizes = [sum(area.size for area in problem.areas if problem.disk_names[area.disk] == disk) for disk in disks]
        size, disk = max(zip(sizes, disks))
        sentences.append(f"{len(disks)} disks hold {sum(sizes)} MiB, the largest of them ({disk}) {size} MiB")
    return sentences


def _least_of(problem: Problem, name: str) -> int:
    """Return the minimum of a space; of one on every disk that of all together, of an array what its legs take."""
    sizes = [demand.low * (demand.legs if demand.kind is Kind.LEGS else demand.unit) for demand in problem.demands if demand.name == name]
    sizes += [size for boot in problem.boot_partitions if boot.name == name for _area, size in boot.sizes[:1]]
    return sum(sizes) or sum(pool.lo for pool in problem.pools if pool.name == name)


def _relaxed(problem: Problem, constraints: Sequence[str]) -> list[Remedy]:
    """Return which relations may be given up."""
    found = []
    for name in constraints:
        kind, _colon, subject = name.partition(":")
        if kind == "apart":
            says = f"let {subject} share disks with {_others(problem, name)}, without apart_from"
            found.append(Remedy((says,), keys={subject: {"apart_from": None}}))
        elif kind == "together":
            says = f"let {subject} lie on other disks than {_others(problem, name)}, without together_with"
            found.append(Remedy((says,), keys={subject: {"together_with": None}}))
    return found


def _with_other_legs(problem: Problem, demand: Demand, trial: Trial, done: Remedy) -> Iterator[tuple[Remedy, bool]]:
    """Give what may help a space that needs more drives than it may use, and whether it does."""
    areas = demand.areas or range(len(problem.areas))
    roomiest = max(areas, key=lambda area: (problem.areas[area].size, -area), default=None)
    if roomiest is None:
        return
    lack = TooFewDrives(
        name=demand.name,
        legs=demand.legs,
        spares=demand.spares,
        copies=len(demand.copies),
        usable=len(problem.drives_of(demand.areas)),
        drives=_count_drives(problem),
        like=problem.disk_names[problem.areas[roomiest].disk],
    )
    for ways in trial.ways_out(lack):
        helping = next((way for way in ways if trial.helps(done.and_then(way))), None)
        if ways:
            yield helping or ways[-1], helping is not None


def _more_or_fewer(problem: Problem, demand: Demand) -> Remedy:
    """Return in general words what would help a space that needs more drives than it may use."""
    fewer = "copies" if demand.copies else "spares or legs" if demand.spares else "legs" if demand.group is None else "stripes"
    there = _count_drives(problem)
    more = f"let {demand.name} use at least {demand.legs}" if there >= demand.legs else f"add {demand.legs - there} or more"
    return Remedy((f"{more} disks, or plan {demand.name} with fewer {fewer}",))


def _count_drives(problem: Problem) -> int:
    return len({problem.drive_of(disk) for disk in range(len(problem.disk_names))})


def _larger(constraints: Sequence[str], problem: Problem, scale: float) -> Remedy:
    """Return which disks would have to be larger."""
    grown = least_to_grow(problem, constraints)
    sizes = dict(zip(problem.disk_names, problem.disk_sizes))
    return Remedy(
        sizes={disk: FromTo(sizes[disk], sizes[disk] + math.ceil(mib * scale)) for disk, mib in (grown.mib if grown else {}).items() if mib}
    )


def _lowered(constraints: Sequence[str], problem: Problem, scale: float) -> Remedy:
    """Return which minimums would have to be lower."""
    found = least_to_lower(problem, constraints, least_to_give_up(problem, constraints))
    changes = {} if found is None else found.mib
    return Remedy(minimums={name.split(":", 1)[1]: _lower(problem, name, math.ceil(mib * scale)) for name, mib in changes.items() if mib})


def _lower(problem: Problem, name: str, mib: int) -> FromTo:
    """Return the minimum of a space, in the units of the schema, and the minimum that is these MiB lower."""
    space = name.split(":", 1)[1]
    minimums = [demand.lo for demand in problem.demands if demand.name == space]
    minimums += [size for boot in problem.boot_partitions if boot.name == space for _area, size in boot.sizes]
    wanted = max([0, *minimums, *(pool.lo for pool in problem.pools if pool.name == space)])
    percentages = [(demand.lo, demand.percentages[0]) for demand in problem.demands if demand.name == space]
    percentages += [(pool.lo, pool.percentages[0]) for pool in problem.pools if pool.name == space]
    percentages += [(size, boot.percentage) for boot in problem.boot_partitions if boot.name == space for _area, size in boot.sizes]
    written = dict(percentages).get(wanted, "")
    for demand in problem.demands:
        if demand.name == space and demand.data_in is not None and mib < wanted and demand.data_in(wanted - mib) > 0:
            asked = wanted - demand.own
            return FromTo(asked, min(asked, demand.data_in(wanted - mib)), written)
    return FromTo(wanted, max(0, wanted - mib), written)
