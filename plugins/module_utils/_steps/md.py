# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""md arrays.

New arrays are built up as md wants it, in the background: with --assume-clean parity would be wrong, and mirrors would answer with one
half or the other where nothing was written yet.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.stacks import detail_command, members_of, parse_array
from .._storage.raid import ArrayOptions, is_write_mostly, read_options
from .machine import LONG_PATIENCE, MOVING_PATIENCE, CommandFailed, Machine, StepFailed
from .needs import Ability, Tool, listed_ability
from .picture import Picture, Piece, changed, holding
from .reach import Reach, whole_devices
from .step import Step, Writes

MDADM = Tool("mdadm", "mdadm", "mdadm")
_MD = listed_ability("md_mod", "/proc/devices", " md", "md arrays")

MEMBER = "member of an array"
"""The content of members in pictures."""
_HEADING = "arrays"

_LOOKS = 120
"""How often to look whether md has begun, or let go; each look waits for a quarter of a second or longer."""

_AT_THE_END = ("0.90", "1.0")
"""Metadata behind the data, which begin where the member does."""

_ANY_HOST = "--homehost=any"
"""Recorded in the array: it comes back under its own name whatever the host is called by then."""


class ArrayStep(Step):
    """A step on an array by its node, which all members share."""

    device: str

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (MDADM,)


@dataclass(frozen=True)
class CreateArray(ArrayStep):
    """Create an md array on devices that are cleared.

    `device` is `/dev/md/NAME`, `title` the NAME, `level` as mdadm has it (raid1), `metadata` 1.2, 1.0, 0.90 or default, `uuid` as libblkid
    writes it (mdadm wants it with colons: fields of 8 hexadecimal digits). Levels other than raid0 get an internal bitmap unless
    `options` say otherwise.
    """

    device: str
    title: str
    level: str
    members: tuple[str, ...]
    spares: tuple[str, ...]
    metadata: str
    uuid: str
    options: ArrayOptions = ArrayOptions()
    write_mostly: tuple[str, ...] = ()
    """Members that md reads from only where it must."""

    words: t.ClassVar[str] = "create the array {device}, {level} on {members}"

    @property
    def says(self) -> str:
        """See Described."""
        slow = f", rather not reading from {', '.join(self.write_mostly)}" if self.write_mostly else ""
        return super().says + (f", with {', '.join(self.spares)} as spare" if self.spares else "") + self.options.described() + slow

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_MD,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, (*self.members, *self.spares))

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, *self.members, *self.spares))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        members = (*self.members, *self.spares)
        return {**holding(picture, members, MEMBER), self.device: array_piece(self.title, self.level, members)}

    def command(self) -> list[str]:
        """Return the command; its questions are answered by --run, for the members are cleared."""
        metadata = [] if self.metadata == "default" else [f"--metadata={self.metadata}"]
        options = self.options if self.level == "raid0" or self.options.bitmap else replace(self.options, bitmap="internal")
        spares = [f"--spare-devices={len(self.spares)}"] if self.spares else []
        identity = [f"--name={self.title}", f"--uuid={colons(self.uuid)}", _ANY_HOST]
        shape = [f"--level={self.level}", *metadata, *options.words(), f"--raid-devices={len(self.members)}", *spares]
        # The option holds for all devices after it, and no array has write-mostly members and spares.
        fast = [member for member in self.members if member not in self.write_mostly]
        slow = ["--write-mostly", *self.write_mostly] if self.write_mostly else []
        return ["mdadm", "--create", self.device, "--run", *identity, *shape, *fast, *slow, *self.spares]

    def run(self, machine: Machine) -> None:
        """Create the array and compare it with the step. Its name, level and identity are in the superblocks."""
        machine.change(self.command())
        machine.settle()
        machine.wait_for([self.device])
        _check(machine, self.device, self.uuid, self.level)


class _MemberStep(ArrayStep):
    """A step that gives members to a running array."""

    members: tuple[str, ...]

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, *self.members))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        picture = holding(picture, self.members, MEMBER)
        array = picture.get(self.device)
        return changed(picture, self.device, on=(*array.on, *self.members)) if array is not None else picture

    def _check_members(self, machine: Machine) -> None:
        machine.settle()
        outcome = machine.run(detail_command(self.device))
        there = members_of(outcome.stdout) if outcome is not None and outcome.code == 0 else ()
        lacking = [member for member in self.members if (machine.resolve(member) or member) not in there and member not in there]
        if lacking:
            raise StepFailed(f"{self.device} has {', '.join(there) or 'no members'}, but not {', '.join(lacking)}")


@dataclass(frozen=True)
class AddMembers(_MemberStep):
    """Add cleared devices to a running array: md builds those up in the background that take places of members, the others stand by."""

    device: str
    members: tuple[str, ...]

    words: t.ClassVar[str] = "add {members} to the array {device}, for missing members and spares"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step. A new member was cleared before; a spare that comes back is a member."""
        return whole_devices(present, self.members, keeps=True)

    def run(self, machine: Machine) -> None:
        """Add the members, and see that the array has them."""
        machine.change(["mdadm", "--manage", self.device, "--add", *self.members])
        self._check_members(machine)


@dataclass(frozen=True)
class ReAddMembers(_MemberStep):
    """Take members back that a running array started without: md brings over to them what was written since."""

    device: str
    members: tuple[str, ...]

    words: t.ClassVar[str] = "re-add {members} to the array {device}, which started without"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.members, keeps=True)

    def after(self, picture: Picture) -> Picture:
        """See Step. Members that were left out looked like an array of their own, which does not run."""
        left_out = [key for key, piece in picture.items() if piece.heading == _HEADING and piece.on and set(piece.on) <= set(self.members)]
        return super().after({key: piece for key, piece in picture.items() if key not in left_out})

    def run(self, machine: Machine) -> None:
        """Re-add the members, and see that the array has them. Unlike --add this never makes a new member of a device unknown to md."""
        machine.change(["mdadm", "--manage", self.device, "--re-add", *self.members])
        self._check_members(machine)


@dataclass(frozen=True)
class WidenArray(_MemberStep):
    """Add cleared devices to a running array, so that it has `count` members: copies of a mirror, or room that md spreads parity over."""

    device: str
    members: tuple[str, ...]
    count: int

    words: t.ClassVar[str] = "add {members} to the array {device}, {count} members in all"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.members)

    def run(self, machine: Machine) -> None:
        """Add the members and give them places of their own, and see that the array has them."""
        machine.change(["mdadm", "--grow", self.device, f"--raid-devices={self.count}", "--add", *self.members])
        self._check_members(machine)


@dataclass(frozen=True)
class ReplaceMember(ArrayStep):
    """Move a member of a running array onto a cleared device: md copies it while the array keeps all its copies and is in use.

    `name` is the kernel's name of the array, `metadata` the version of its superblocks. It begins wherever an earlier run was cut off.
    """

    device: str
    name: str
    old: str
    new: str
    metadata: str = "1.2"

    words: t.ClassVar[str] = "replace {old} in the array {device} by {new}, and take {old} out"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device, self.old, self.new], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, self.old, self.new))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        picture = holding(holding(picture, [self.new], MEMBER), [self.old], "")
        array = picture.get(self.device)
        if array is None:
            return picture
        return changed(picture, self.device, on=tuple(self.new if key == self.old else key for key in array.on if key != self.new))

    def run(self, machine: Machine) -> None:
        """Add the new member, have md copy the old one onto it, take the old one out, and have it be no member any more."""
        if not self._state(machine, self.new):
            machine.change(["mdadm", "--manage", self.device, "--add", self.new])
            machine.settle()
        old, new = self._state(machine, self.old), self._state(machine, self.new)
        if old and not old & {"faulty", "want_replacement"} and not new & {"faulty", "in_sync"}:
            # After a start md has kept which member is the replacement, and not that the old one is to be replaced.
            by = [] if "replacement" in new else ["--with", self.new]
            # Once the old one is marked, md may take the new one, a spare, by itself before mdadm can name it; then mdadm fails with 1.
            machine.change(["mdadm", "--manage", self.device, "--replace", self.old, *by], accepted=(0, 1))
            if not self._state(machine, self.old) & {"faulty", "want_replacement"} and "in_sync" not in self._state(machine, self.new):
                raise StepFailed(f"md does not begin to replace {self.old} in {self.device}; see /proc/mdstat and the kernel's log")
        self._wait(machine)
        self._take_out(machine)
        forget_membership(machine, self.old, self.metadata)
        outcome = machine.run(detail_command(self.device))
        there = members_of(outcome.stdout) if outcome is not None and outcome.code == 0 else ()
        known = {machine.resolve(self.new) or self.new, self.new}
        if not known.intersection(there) or {machine.resolve(self.old) or self.old, self.old}.intersection(there):
            raise StepFailed(f"{self.device} has {', '.join(there) or 'no members'} after {self.old} was replaced by {self.new}")

    def _state(self, machine: Machine, node: str) -> frozenset[str]:
        """Return what the kernel says of a member; nothing where it is none."""
        member = (machine.resolve(node) or node).rsplit("/", 1)[-1]
        said = machine.read(f"/sys/block/{self.name}/md/dev-{member}/state") or ""
        return frozenset(word for word in said.strip().split(",") if word)

    def _wait(self, machine: Machine) -> None:
        """Wait until md has copied all; it begins after anything else that it is building up."""
        for _look in range(_LOOKS):
            # Code 1: there was nothing to wait for, as between two syncs.
            machine.change(["mdadm", "--wait", self.device], patience=MOVING_PATIENCE, accepted=(0, 1))
            old, new = self._state(machine, self.old), self._state(machine, self.new)
            if "faulty" in new:
                raise StepFailed(f"{self.new} failed while {self.device} was copied onto it; {self.old} is still its member")
            if "in_sync" in new and (not old or "faulty" in old):
                return
            machine.give_way()
        raise StepFailed(f"md does not go on to copy {self.old} onto {self.new}; see /proc/mdstat")

    def _take_out(self, machine: Machine) -> None:
        """Take the old member out, as soon as md has released that."""
        for look in range(_LOOKS):
            if not self._state(machine, self.old):
                return
            try:
                machine.change(["mdadm", "--manage", self.device, "--remove", self.old])
            except CommandFailed:
                if look == _LOOKS - 1:
                    raise
            machine.give_way()


@dataclass(frozen=True)
class ForgetMember(ArrayStep):
    """Have a device that was taken out of an array end its membership; the array runs without."""

    device: str
    old: str
    metadata: str = "1.2"

    words: t.ClassVar[str] = "clear what {old} was in the array {device}, which does without"

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.old], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.old,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        left_out = [key for key, piece in picture.items() if piece.heading == _HEADING and piece.on == (self.old,)]
        return holding({key: piece for key, piece in picture.items() if key not in left_out}, [self.old], "")

    def run(self, machine: Machine) -> None:
        """Clear the superblock."""
        forget_membership(machine, self.old, self.metadata)


def forget_membership(machine: Machine, node: str, metadata: str) -> None:
    """Clear the superblock of a former member, with what shows through where that is at its end: the copy of a file system in use."""
    machine.change(["mdadm", "--zero-superblock", node])
    if metadata in _AT_THE_END:
        machine.change(["wipefs", "--all", "--quiet", node])
    machine.settle()


class _ArrayChange(ArrayStep):
    """A step that changes an array as a whole, and leaves what is on it."""

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,))

    def _grow(self, machine: Machine, option: str) -> None:
        """Change the array by an option of mdadm once it is built up, which can take hours: md refuses it before."""
        # Code 1: there was nothing to wait for.
        machine.change(["mdadm", "--wait", self.device], patience=LONG_PATIENCE, accepted=(0, 1))
        machine.change(["mdadm", "--grow", self.device, option])


@dataclass(frozen=True)
class GrowArray(_ArrayChange):
    """Let a running array take the whole of its members, which have grown, when md has built it up."""

    device: str

    words: t.ClassVar[str] = "grow the array {device} to the size of its members, when it is built up"

    def run(self, machine: Machine) -> None:
        """Let the array take all of its members."""
        self._grow(machine, "--size=max")
        machine.settle()


@dataclass(frozen=True)
class ChangeBitmap(_ArrayChange):
    """Give a running array an internal write-intent bitmap, or take its bitmap away, when md has built it up; `name` is the kernel's."""

    device: str
    name: str
    bitmap: str

    words: t.ClassVar[str] = "set the bitmap of the array {device} to {bitmap}, when it is built up"

    def run(self, machine: Machine) -> None:
        """Change the bitmap, and see that it has changed."""
        self._grow(machine, f"--bitmap={self.bitmap}")
        found = read_options(lambda file: machine.read(f"/sys/block/{self.name}/md/{file}")).bitmap
        if found != self.bitmap:
            raise StepFailed(f"{self.device} has the bitmap {found or '(not known)'} after it was set to {self.bitmap}")


@dataclass(frozen=True)
class ChangeWriteMostly(_ArrayChange):
    """Have md read from a member of a running mirror only where it must, or as from others; `name` and `member` are the kernel's."""

    device: str
    name: str
    node: str
    member: str
    slow: bool

    @property
    def says(self) -> str:
        """See Described."""
        how = "only where no other member can be read" if self.slow else "as from others"
        return f"read from {self.node} in the array {self.device} {how}"

    def run(self, machine: Machine) -> None:
        """Set the flag, which md writes to the superblocks, and see that it is set."""
        state = f"/sys/block/{self.name}/md/dev-{self.member}/state"
        machine.write(state, [(0, b"writemostly" if self.slow else b"-writemostly")])
        if is_write_mostly(machine.read(state)) != self.slow:
            raise StepFailed(f"{self.node} is still {'not ' if self.slow else ''}write-mostly in {self.device}")


@dataclass(frozen=True)
class StartArray(ArrayStep):
    """Assemble a stopped md array from these members (nodes) under the node `device`; `uuid` is written as libblkid does."""

    device: str
    members: tuple[str, ...]
    uuid: str

    words: t.ClassVar[str] = "start the array {device} on {members}"

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (_MD,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, self.members, keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, *self.members))

    def run(self, machine: Machine) -> None:
        """Assemble the array, which mdadm refuses when members that it had are missing."""
        machine.change(["mdadm", "--assemble", self.device, f"--uuid={colons(self.uuid)}", _ANY_HOST, *self.members])
        machine.settle()
        machine.wait_for([self.device])
        _check(machine, self.device, self.uuid, None)


@dataclass(frozen=True)
class StopArray(_ArrayChange):
    """Stop a running md array by its node, without touching its members' superblocks."""

    device: str

    words: t.ClassVar[str] = "stop the array {device}"

    def run(self, machine: Machine) -> None:
        """Stop the array; its superblocks stay as they are."""
        machine.change(["mdadm", "--stop", self.device])
        machine.settle()


def array_piece(title: str, level: str, on: tuple[str, ...], holds: str = "") -> Piece:
    """Return an array of a picture; its title may have the host's name in front (`host:title`)."""
    return Piece(_HEADING, (0, title), f"{title.rpartition(':')[2]} {level}", 0, on, holds)


def colons(uuid: str) -> str:
    """Return a UUID as mdadm writes it: four groups of eight digits."""
    digits = uuid.replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def _check(machine: Machine, device: str, uuid: str, level: t.Optional[str]) -> None:
    outcome = machine.run(detail_command(device))
    array = parse_array(outcome.stdout) if outcome is not None and outcome.code == 0 else None
    if array is None:
        raise StepFailed(f"{device} cannot be read back with mdadm --detail")
    if array.uuid != uuid or (level is not None and array.level != level):
        raise StepFailed(f"{device} is {array.level} with the UUID {array.uuid} instead of {level or 'an array'} with {uuid}")
