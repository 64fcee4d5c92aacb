# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of a container's keys and what its header has -> the changes: first all that is added, then what may go. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..steps.kinds import Step
from ..steps.luks import Key
from ..storage.unlock import KEY_FILE, PASSPHRASE, RECOVERY, TANG, TPM2, Method
from .header import KEYS, OTHER, Header, Token

GOING = (KEYS, RECOVERY, TANG, TPM2)
"""What can be taken away by name."""
RENEWED = (RECOVERY, TANG, TPM2)
"""What can be made anew by name: the others become new by another passphrase, file or word of the wish."""


@dataclass(frozen=True)
class Container:
    """A LUKS container by its name and a node of this boot, and how it is to be opened."""

    name: str
    device: str
    methods: tuple[Method, ...]


@dataclass(frozen=True)
class Request:
    """What is asked for. `key` is what opens the containers, and their passphrase where they are to have one; `old_key` what did before.

    `pin` is what TPMs are told that want a PIN. `take_away` are methods, and KEYS, of which all goes that is not wanted; `renew` those that
    are made anew. Paths of key files lie below `root`.
    """

    containers: tuple[Container, ...]
    key: Key = field(default_factory=Key)
    old_key: Key = field(default_factory=Key)
    take_away: tuple[str, ...] = ()
    renew: tuple[str, ...] = ()
    root: str = "/"
    pin: str = field(default="", repr=False)


@dataclass(frozen=True)
class Present:
    """A container as it is: `header` None where there is none yet, which is so in check mode only.

    `opened` are slots by the methods whose passphrase or file opens them, `unlocking` is a given key that opens the container.
    """

    header: t.Optional[Header] = None
    opened: Mapping[Method, int] = field(default_factory=dict)
    unlocking: t.Optional[Key] = None
    unlocking_slot: t.Optional[int] = None


@dataclass(frozen=True)
class DropUnfinished(Step):
    """Remove a slot that a run which was cut off left, and then the mark that says so; None for a slot that opens as it should."""

    device: str
    name: str
    slot: t.Optional[int]
    token: int

    @property
    def says(self) -> str:
        """See Step."""
        what = "the mark" if self.slot is None else f"key slot {self.slot}"
        return f"remove {what} that an interrupted run left in the LUKS container {self.name}"


@dataclass(frozen=True)
class Enrol(Step):
    """Have a method open the container."""

    device: str
    name: str
    method: Method

    @property
    def says(self) -> str:
        """See Step."""
        return f"add {self.method.words} to the LUKS container {self.name}"


@dataclass(frozen=True)
class TakeAway(Step):
    """Remove slots and their tokens; what they open by is in `method`."""

    device: str
    name: str
    method: str
    slots: tuple[int, ...]
    tokens: tuple[int, ...] = ()

    @property
    def says(self) -> str:
        """See Step."""
        what = f"key slot{'s' if len(self.slots) > 1 else ''} {', '.join(map(str, self.slots))}" if self.slots else "an empty token"
        return f"remove {what} ({METHOD_WORDS[self.method]}) from the LUKS container {self.name}"


METHOD_WORDS = {KEYS: "a passphrase or key file", RECOVERY: "a recovery key", TANG: "Tang", TPM2: "the TPM", OTHER: "something else"}


@dataclass(frozen=True)
class Changes:
    """The steps in order, and why they cannot be taken."""

    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()
    kept: frozenset[int] = frozenset()


def plan_changes(container: Container, present: Present, request: Request) -> Changes:
    """Return what is to be changed of a container's keys."""
    header = present.header
    if header is None:
        return Changes(tuple(Enrol(container.device, container.name, method) for method in container.methods))
    drops = tuple(_drop(container, mark, present) for mark in header.unfinished)
    header = without(header, drops)
    kept = {method: _slots(method, header, present, request) for method in container.methods}
    enrols = tuple(Enrol(container.device, container.name, method) for method, slots in kept.items() if not slots)
    stay = frozenset(slot for slots in kept.values() for slot in slots)
    going = tuple(_going(container, header, stay, request))
    steps = (*drops, *enrols, *going)
    return Changes(steps, tuple(_problems(container, present, request, Changes(steps, kept=stay))), stay)


def _drop(container: Container, mark: Token, present: Present) -> DropUnfinished:
    """Return how a mark goes: with its slot, unless a key that is given opens it, which is nobody's leftover."""
    known = {*present.opened.values(), present.unlocking_slot}
    slot = int(mark.data["slot"])
    return DropUnfinished(container.device, container.name, None if slot in known else slot, mark.number)


def without(header: Header, drops: tuple[DropUnfinished, ...]) -> Header:
    """Return the header as it is when unfinished slots are gone."""
    slots, marks = {drop.slot for drop in drops if drop.slot is not None}, {drop.token for drop in drops}
    tokens = tuple(
        replace(token, slots=tuple(set(token.slots) - slots))
        for token in header.tokens
        if token.number not in marks and not (token.slots and set(token.slots) <= slots)
    )
    return Header(tuple(slot for slot in header.slots if slot not in slots), tokens)


def _slots(method: Method, header: Header, present: Present, request: Request) -> frozenset[int]:
    """Return the slots that a wanted method opens."""
    if method.kind in request.renew:
        return frozenset()
    if method.kind in (PASSPHRASE, KEY_FILE):
        if method.kind == PASSPHRASE and not request.key.passphrase:
            by_files = {slot for other, slot in present.opened.items() if other.kind == KEY_FILE}
            return frozenset(slot for slot in header.slots if header.method_of(slot) == KEYS and slot not in by_files)
        opened = present.opened.get(method)
        return frozenset() if opened is None or opened not in header.slots else frozenset((opened,))
    return frozenset(slot for token in header.of(method) for slot in token.slots if slot in header.slots)


def _going(container: Container, header: Header, stay: frozenset[int], request: Request) -> Iterator[TakeAway]:
    for method in dict.fromkeys((*request.renew, *request.take_away)):
        slots = tuple(slot for slot in header.slots if header.method_of(slot) == method and slot not in stay)
        tokens = tuple(token.number for token in header.kind(method) if not set(token.slots) & stay)
        if slots or tokens:
            yield TakeAway(container.device, container.name, method, slots, tokens)


def _problems(container: Container, present: Present, request: Request, changes: Changes) -> Iterator[str]:
    enrols = [step for step in changes.steps if isinstance(step, (Enrol, DropUnfinished))]
    gone = {slot for step in changes.steps if isinstance(step, TakeAway) for slot in step.slots}
    if any(isinstance(step, Enrol) and step.method.pin for step in enrols) and not request.pin:
        yield f"{container.name} needs a PIN: give it as tpm2_pin"
    if any(isinstance(step, Enrol) and step.method.kind == PASSPHRASE for step in enrols) and not request.key.passphrase:
        yield f"{container.name} needs a passphrase: give it as luks_key"
    elif enrols and present.unlocking is None:
        yield (
            f"none of the given keys opens {container.name} on {container.device}; give one that does as luks_old_key "
            f"or luks_old_key_file: a passphrase, a key file, or its recovery key"
        )
    if gone and not enrols and present.header is not None and not set(present.header.slots) - gone:
        yield f"nothing that opens {container.name} would be left: list in unlock what should stay"


def seen_to_open(changes: Changes, present: Present) -> bool:
    """Return whether a key was seen to open a slot that stays."""
    gone = {slot for step in changes.steps if isinstance(step, TakeAway) for slot in step.slots}
    return bool({*present.opened.values(), present.unlocking_slot} - {None} - gone)
