# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of a container's keys and what its header has -> the changes: first all that is added, then what may go. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .._steps.key import Key
from .._steps.step import Described
from .._storage.unlock import KEY_FILE, PASSPHRASE, RECOVERY, TANG, TPM2, Method
from .header import KEYS, OTHER, SLOTS, TOKENS, Header, Token

GOING = (KEYS, RECOVERY, TANG, TPM2)
"""What can be taken away by name."""
RENEWED = (RECOVERY, TANG, TPM2)
"""Methods that `renew` can replace; the others change with another passphrase, key file or option of the schema."""


@dataclass(frozen=True)
class Container:
    """A LUKS container by its name and a node of this boot, and how it is to be opened."""

    name: str
    device: str
    methods: tuple[Method, ...]


BEGIN, ADD, FINISH, COPY, LOOK = PARTS = ("begin", "add", "finish", "copy", "look")
"""The parts of a run. BEGIN does everything unless a recovery key is needed; then it changes nothing and says so. ADD enrols, with the
recovery keys that the controller has written by then; FINISH confirms them and removes what may go. LOOK only says what is needed."""


@dataclass(frozen=True)
class HandOver:
    """What the controller gives a part of a run: the recovery keys that it holds, by container.

    `written` says whether they lie in files; if not, they are only shown, and may be lost with the connection. `earlier_keys` are recovery
    keys that are replaced, which may be all that opens a container. `added` are the slots that ADD has filled.
    """

    part: str = BEGIN
    recovery_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    earlier_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: bool = False
    added: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """The request. `key` opens the containers, and becomes their passphrase where the schema wants one; `old_key` opened them before.

    `pin` is for TPMs that want a PIN. `take_away` are methods, and KEYS, whose unwanted slots are removed; `renew` those to replace.
    Paths of key files lie below `root`. `take_last_key` allows to leave nothing but a TPM or Tang.
    """

    containers: tuple[Container, ...]
    key: Key = field(default_factory=Key)
    old_key: Key = field(default_factory=Key)
    take_away: tuple[str, ...] = ()
    renew: tuple[str, ...] = ()
    root: str = "/"
    pin: str = field(default="", repr=False)
    take_last_key: bool = False
    hand_over: HandOver = field(default_factory=HandOver)
    protected: Mapping[str, str] = field(default_factory=dict)
    """By the names of containers on protected disks what protects them, in words."""


@dataclass(frozen=True)
class Present:
    """A container as it is: `header` None where there is none yet, which is so in check mode only.

    `opened` are slots by the methods whose passphrase or file opens them, `unlocking` is a given key that opens the container.
    """

    header: t.Optional[Header] = None
    opened: Mapping[Method, int] = field(default_factory=dict)
    unlocking: t.Optional[Key] = None
    unlocking_slot: t.Optional[int] = None


class Step(Described):
    """A change of the keys in a header."""


@dataclass(frozen=True)
class DropUnfinished(Step):
    """Remove a slot that a run which was cut off left, and then the mark that says so; None for a slot that opens as it should."""

    device: str
    name: str
    slot: t.Optional[int]
    token: int

    @property
    def says(self) -> str:
        """See Described."""
        what = "the mark" if self.slot is None else f"key slot {self.slot}"
        return f"remove {what} that an interrupted run left in the LUKS container {self.name}"


@dataclass(frozen=True)
class Confirm(Step):
    """Remove the mark of a slot whose recovery key the controller holds."""

    device: str
    name: str
    slot: int
    token: int

    @property
    def says(self) -> str:
        """See Described."""
        return f"confirm that the recovery key in key slot {self.slot} of the LUKS container {self.name} is kept"


@dataclass(frozen=True)
class Enrol(Step):
    """Have a method open the container."""

    device: str
    name: str
    method: Method

    @property
    def says(self) -> str:
        """See Described."""
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
        """See Described."""
        what = f"key slot{'s' if len(self.slots) > 1 else ''} {', '.join(map(str, self.slots))}" if self.slots else "an empty token"
        return f"remove {what} ({METHOD_WORDS[self.method]}) from the LUKS container {self.name}"


METHOD_WORDS = {KEYS: "a passphrase or key file", RECOVERY: "a recovery key", TANG: "Tang", TPM2: "the TPM", OTHER: "something else"}


@dataclass(frozen=True)
class Changes:
    """The steps in order, and why they cannot be taken. `kept` are the slots of the methods that are wanted."""

    steps: tuple[Step, ...] = ()
    problems: tuple[str, ...] = ()
    kept: frozenset[int] = frozenset()

    @property
    def additions(self) -> tuple[Step, ...]:
        """The steps that take no key away from anybody."""
        return tuple(step for step in self.steps if not isinstance(step, TakeAway))

    @property
    def removals(self) -> tuple[Step, ...]:
        """The other steps."""
        return tuple(step for step in self.steps if isinstance(step, TakeAway))

    @property
    def needs_recovery_key(self) -> bool:
        """Whether a recovery key is to be added."""
        return any(isinstance(step, Enrol) and step.method.kind == RECOVERY for step in self.steps)


def plan_changes(container: Container, present: Present, request: Request) -> Changes:
    """Return what is to be changed of a container's keys."""
    header = present.header
    if header is None:
        return Changes(tuple(Enrol(container.device, container.name, method) for method in container.methods))
    marks = tuple(_settled(container, mark, present) for mark in header.unfinished)
    confirmed = frozenset(step.slot for step in marks if isinstance(step, Confirm))
    header = without(header, tuple(step for step in marks if isinstance(step, DropUnfinished)))
    new = confirmed | request.hand_over.added.get(container.name, frozenset())
    kept = {method: _slots(method, header, present, request, new) for method in container.methods}
    enrols = tuple(Enrol(container.device, container.name, method) for method, slots in kept.items() if not slots)
    stay = frozenset(slot for slots in kept.values() for slot in slots)
    if request.hand_over.part == ADD:
        steps: tuple[Step, ...] = (*(step for step in marks if not isinstance(step, Confirm)), *enrols)
    else:
        steps = (*marks, *enrols, *_going(container, header, stay, request))
    return Changes(steps, tuple(_problems(container, present, request, header, Changes(steps, kept=stay))), stay)


def _settled(container: Container, mark: Token, present: Present) -> t.Union[DropUnfinished, Confirm]:
    """Return how a mark goes: with its slot, unless the slot is opened by a key that somebody gives or holds."""
    slot = int(mark.data["slot"])
    by_recovery_key = {opened for method, opened in present.opened.items() if method.kind == RECOVERY}
    if slot in by_recovery_key and present.header is not None and present.header.method_of(slot) == RECOVERY:
        return Confirm(container.device, container.name, slot, mark.number)
    known = {*present.opened.values(), present.unlocking_slot} - by_recovery_key
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


def _slots(method: Method, header: Header, present: Present, request: Request, new: frozenset[int]) -> frozenset[int]:
    """Return the slots that a wanted method opens; `new` are those that this run, or one that was interrupted, has filled."""
    if method.kind in request.renew:
        return frozenset(slot for token in header.of(method) for slot in token.slots if slot in new)
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


def _problems(container: Container, present: Present, request: Request, header: Header, changes: Changes) -> Iterator[str]:
    """Give why the changes cannot be made; `header` is the one without what an interrupted run left."""
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
    added = [step.method.kind for step in changes.steps if isinstance(step, Enrol)]
    if not _has_room(header, added):
        yield (
            f"{container.name} has no room for {len(added)} more keys: a LUKS 2 header has {SLOTS} key slots and as many tokens, "
            f"and new keys are added before others are removed; remove one first, in a run of its own"
        )
    if not gone:
        return
    stays = {header.method_of(slot) for slot in header.slots if slot not in gone} | set(added)
    if not stays:
        yield f"nothing that opens {container.name} would be left: list in unlock what should stay"
    elif stays <= {TPM2, TANG} and not request.take_last_key and _takes_keys(changes):
        others = " and ".join(METHOD_WORDS[one] for one in sorted(stays))
        yield (
            f"nobody would hold a key of {container.name} any more, only {others} would open it: list recovery, a passphrase or a key file "
            f"in unlock, or say take_last_key: true"
        )
    elif RECOVERY in added and not request.hand_over.written and not _others_open(stays, added, changes, present, request):
        yield (
            f"the recovery key of {container.name} would be shown only, so no other key is removed in the run that creates it: give "
            f"recovery_key_directory, or remove others in a later run, with the recovery key as luks_old_key"
        )


def _has_room(header: Header, added: t.Sequence[str]) -> bool:
    """Return whether a header has the slots and tokens for more keys. One more token is the mark of the slot that is being filled."""
    slots, tokens = len(header.slots), len(header.tokens)
    for method in added:
        if slots >= SLOTS or tokens + 2 > SLOTS:
            return False
        slots, tokens = slots + 1, tokens + (method in TOKENS) + (method == RECOVERY)
    return True


def _others_open(stays: set[str], added: t.Sequence[str], changes: Changes, present: Present, request: Request) -> bool:
    """Return whether something other than a recovery key can be seen to open the container in the end."""
    return bool({TPM2, TANG} & stays or {PASSPHRASE, KEY_FILE} & set(added)) or seen_to_open(changes, present, request)


def _takes_keys(changes: Changes) -> bool:
    """Return whether keys go that somebody can hold."""
    return any(isinstance(step, TakeAway) and step.slots and step.method in (KEYS, RECOVERY) for step in changes.steps)


def seen_to_open(changes: Changes, present: Present, request: Request) -> bool:
    """Return whether a key that somebody keeps was seen to open a slot that stays. A recovery key that is only shown is not kept yet."""
    gone = {slot for step in changes.steps if isinstance(step, TakeAway) for slot in step.slots}
    opened = {slot for method, slot in present.opened.items() if method.kind != RECOVERY or request.hand_over.written}
    return bool({*opened, present.unlocking_slot} - {None} - gone)
