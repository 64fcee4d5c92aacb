# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing changes on a disk that `wipe` does not name but a run's own work: real contents in every place, at every moment of a run.

Cases are drawn by a seed: TEST_NOTHING_UNNAMED_SEED, and TEST_NOTHING_UNNAMED_CASES says how many. What needs md or device-mapper in the
kernel is in tests/vm; here superblocks of md are written by hand, and headers of LUKS and LVM by their own tools.
"""

from __future__ import annotations

import functools
import os
import pathlib
import random
import shutil
import struct
import subprocess
import typing as t
import uuid
from dataclasses import dataclass, field

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.untouched import left_by_tool, trace_of_use
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Report, Request
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_present import read_present
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import FormatLuks, OpenLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import FinishPartitions
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import table_uuid
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, Mounted, merged, new_disk, probe, refuse, run, schema, stand_in
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

CASES = int(os.environ.get("TEST_NOTHING_UNNAMED_CASES", "160"))
SEED = int(os.environ.get("TEST_NOTHING_UNNAMED_SEED", "1"))
BATCHES = 8

SIZE = 64
SECTOR = 512
TABLE = 34 * SECTOR
ROOMS = {"p1": (1, 30), "p2": (31, 16), "p3": (47, 4)}
"""Where the partitions lie, in MiB: two with an ext4, and one with nothing on it."""
PLACES = {"disk": (0, SIZE * MIB), **{name: (begin * MIB, size * MIB) for name, (begin, size) in ROOMS.items()}}

OPTIONS: tuple[tuple[str, ...], ...] = ((), ("-m", "0"))
"""Words for mkfs of the first partition: the axis of everything that reaches a tool."""

Content = dict[int, bytes]
"""What is on a device where it is not zeros: sectors by their offsets."""


# ---- what is on a disk


def content_of(device: str) -> Content:
    found: Content = {}
    zeros = bytes(MIB)
    with open(device, "rb") as file:
        for start in range(0, SIZE * MIB, MIB):
            block = file.read(MIB)
            if block and block != zeros[: len(block)]:
                sectors = ((at, block[at : at + SECTOR]) for at in range(0, len(block), SECTOR))
                found.update({start + at: sector for at, sector in sectors if any(sector)})
    return found


def write(device: str, content: Content, start: int = 0) -> None:
    with open(device, "r+b") as file:
        for at, sector in content.items():
            file.seek(start + at)
            file.write(sector)
        file.flush()
        os.fsync(file.fileno())


def changed(before: Content, after: Content) -> set[int]:
    return {at for at in before.keys() | after.keys() if before.get(at) != after.get(at)}


def regions(offsets: t.Iterable[int]) -> str:
    """Return offsets as runs of sectors, for a message."""
    found: list[list[int]] = []
    for at in sorted(offsets):
        if found and at == found[-1][1]:
            found[-1][1] += SECTOR
        else:
            found.append([at, at + SECTOR])
    return ", ".join(f"{start}-{end}" for start, end in found[:8])


# ---- what somebody puts there


def md_superblock(version: str, size: int) -> Content:
    """An md superblock as mdadm and libblkid accept it, in the place of its version."""
    if version == "0.90":
        offset = size // 65536 * 65536 - 65536
        words = [0xA92B4EFC, 0, 90, 0, 0, 7, 1, 1, size // 1024 - 64, 2, 2, 0, 0, 8, 9, 10]
        words += [0] * (32 - len(words)) + [1, 1, 2, 2, 0, 0, 0]
        words += [0] * (1024 - len(words))
        words[38] = sum(words) & 0xFFFFFFFF
        return sectors_of(struct.pack("<1024I", *words), offset)
    sectors = size // 512
    place = {"1.0": (sectors - 16) & ~7, "1.1": 0, "1.2": 8}[version]
    block = bytearray(256 + 2 * 128)
    named = (b"any:theirs", uuid.UUID(int=7).bytes)
    struct.pack_into("<IIII16s32sQIIQIIiI", block, 0, 0xA92B4EFC, 1, 0, 0, named[1], named[0], 1, 1, 0, sectors - 4096, 0, 2, 0, 0)
    struct.pack_into("<QQQQII16s", block, 128, 0 if version == "1.0" else 2048, sectors - 4096, place, 0, 0, 0, uuid.UUID(int=9).bytes)
    struct.pack_into("<QQQ", block, 192, 1, 5, 2**64 - 1)
    struct.pack_into("<I", block, 220, 128)
    for role in range(128):
        struct.pack_into("<H", block, 256 + 2 * role, role if role < 2 else 0xFFFF)
    total = sum(struct.unpack(f"<{len(block) // 4}I", block))
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return sectors_of(bytes(block), place * 512)


def sectors_of(block: bytes, offset: int = 0) -> Content:
    return {offset + at: block[at : at + SECTOR].ljust(SECTOR, b"\0") for at in range(0, len(block), SECTOR)}


def raw(size: int, offset: int = 0) -> t.Callable[[int], Content]:
    return lambda _room: sectors_of(random.Random(size).randbytes(size), offset)


TOOLS = {
    "ext4": ("mkfs.ext4", "-q", "-F", "{}"),
    "ext4 of 4 KiB": ("mkfs.ext4", "-q", "-F", "-b", "4096", "{}"),
    "vfat": ("mkfs.vfat", "-I", "{}"),
    "swap": ("mkswap", "-f", "{}"),
    "LUKS": ("cryptsetup", "luksFormat", "-q", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", "{}"),
    "LUKS 1": ("cryptsetup", "luksFormat", "-q", "--type=luks1", "--pbkdf-force-iterations=1000", "{}"),
    "PV": ("pvcreate", "--yes", "-ff", "{}"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "--mixed", "{}"),
}
"""What makes a content on an empty device."""
WRITTEN: dict[str, t.Callable[[int], Content]] = {
    **{f"md {version}": functools.partial(md_superblock, version) for version in ("0.90", "1.0", "1.1", "1.2")},
    "raw data": raw(MIB),
    "a little raw data": raw(4096),
}
LEAST = {"btrfs": 24 * MIB, "LUKS": 17 * MIB, "ext4 of 4 KiB": 8 * MIB}
USED = "used"
"""The file system that a run made there is mounted, and has a file."""


class Contents:
    """Contents of all sizes, each made once on a loop device of its own."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._known: dict[tuple[str, int], Content] = {}
        self._devices: dict[int, str] = {}

    def of(self, name: str, size: int) -> Content:
        if name in WRITTEN:
            return WRITTEN[name](size)
        if (name, size) not in self._known:
            if size not in self._devices:
                self._devices[size] = new_disk(self._loops, size // MIB)
            device = self._devices[size]
            before = content_of(device)
            write(device, {at: bytes(SECTOR) for at in before})
            command = [word.format(device) for word in TOOLS[name]]
            subprocess.run(command, input=b"x", capture_output=True, check=True)
            self._known[name, size] = content_of(device)
        return self._known[name, size]


# ---- the moments of a run


@dataclass
class Bed:
    """Two disks of one layout, and what is on them after each step of a run that makes it."""

    disk: str
    other: str
    contents: Contents
    layouts: dict[tuple[str, ...], Layout]
    states: dict[str, tuple[Content, Content]] = field(default_factory=dict)

    def put(self, state: str) -> None:
        """Have both disks as they are in a state, and the kernel know their partitions."""
        for device, content in zip((self.disk, self.other), self.states[state]):
            subprocess.run(["partx", "--delete", device], capture_output=True, check=False)
            now = content_of(device)
            write(device, {**{at: bytes(SECTOR) for at in now.keys() - content.keys()}, **content})
            subprocess.run(["partx", "--add", device], capture_output=True, check=False)

    def now(self) -> tuple[Content, Content]:
        return content_of(self.disk), content_of(self.other)


def layout_of(disk: str, other: str, words: tuple[str, ...]) -> Layout:
    spaces = [{"name": name, "size": size} for name, (_begin, size) in ROOMS.items()]
    made = {"fs_type": "ext4", "mount": "none"}
    first = schema(disk, {**spaces[0], **made, "fs_options": " ".join(words)}, {**spaces[1], **made}, spaces[2])
    return parse_static_schema(merged(first, schema(other, {"name": "rest", "size": 20, **made})))


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Bed]:
    loops = Loops(tmp_path_factory.mktemp("loops"))
    disk, other = new_disk(loops, SIZE), new_disk(loops, SIZE)
    layouts = {words: layout_of(disk, other, words) for words in OPTIONS}
    found = Bed(disk, other, Contents(loops), layouts)
    found.states["empty"] = found.now()
    machine, layout = LocalMachine(), layouts[()]
    for number, step in enumerate(plan_steps(layout, read_present(machine, layout)).steps, start=1):
        step.run(machine)
        found.states[f"after step {number}, {type(step).__name__}"] = found.now()
    found.states["finished"] = found.now()
    script = f"label: gpt\nlabel-id: {table_uuid(disk)}\nfirst-lba: 2048\n"
    found.put("empty")
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk], input=script, text=True, check=True)
    found.states["emptied"] = found.now()
    yield found
    loops.remove()


DAMAGES: dict[str, t.Callable[[], tuple[int, int]]] = {
    "none": lambda: (0, 0),
    "the first header": lambda: (SECTOR, 2 * SECTOR),
    "the backup": lambda: (SIZE * MIB - SECTOR, SIZE * MIB),
}
"""What a torn write leaves of a table: these bytes are zeros."""
PERMISSIONS = ("none", "other", "check", "this")


@dataclass(frozen=True)
class Case:
    """What is on the disk, in which place; where tables and marks are; what reaches a tool; and what is permitted."""

    content: str
    place: str
    state: str
    damage: str
    words: tuple[str, ...]
    permission: str


def draw(bed: Bed, chance: random.Random) -> Case:
    while True:
        case = Case(
            chance.choice([*TOOLS, *WRITTEN, USED]),
            chance.choice([*PLACES, "disk"]),
            chance.choice([*bed.states]),
            chance.choice([*DAMAGES, "none", "none"]),
            chance.choice(OPTIONS),
            chance.choice(PERMISSIONS),
        )
        if is_sensible(bed, case):
            return case


def is_sensible(bed: Bed, case: Case) -> bool:
    """Return whether there can be such a case, and something is to be kept in it."""
    if PLACES[case.place][1] < LEAST.get(case.content, 0):
        return False
    if case.state == "empty" and case.damage != "none":
        return False
    if case.content == USED:
        start, _size = PLACES[case.place]
        return case.place in ("p1", "p2") and start + 1024 in bed.states[case.state][0]
    # A permitted run has emptied it: what is behind the table is of before.
    return case.state != "emptied" or (case.place == "disk" and case.content in ("md 1.2", "swap", "PV", "ext4", "ext4 of 4 KiB", "vfat"))


def prepare(bed: Bed, case: Case, folder: pathlib.Path) -> set[int]:
    """Put a case on the disks, and return what of it is somebody's."""
    bed.put(case.state)
    start, end = DAMAGES[case.damage]()
    write(bed.disk, {at: bytes(SECTOR) for at in range(start, end, SECTOR)})
    before = content_of(bed.disk)
    if case.content == USED:
        with Mounted(f"{bed.disk}{case.place}", folder) as mounted:
            (mounted / "precious").write_bytes(b"data" * 5000)
    else:
        begin, size = PLACES[case.place]
        if case.content not in WRITTEN:
            erase_as_tools_do(bed.disk, begin, size)
        write(bed.disk, bed.contents.of(case.content, size), begin)
    for device in (bed.disk, bed.other):
        subprocess.run(["partx", "--update", device], capture_output=True, check=False)
    return changed(before, content_of(bed.disk))


def erase_as_tools_do(device: str, begin: int, size: int) -> None:
    """Erase what is in a place, which is as if somebody had discarded it before he made something there."""
    inside = [at for at in content_of(device) if begin <= at < begin + size]
    write(device, {at: bytes(SECTOR) for at in inside})


def carry_out_case(bed: Bed, case: Case) -> tuple[Report, Report]:
    layout, machine = bed.layouts[case.words], LocalMachine()
    wipe = {"none": (), "check": (), "other": (bed.other,), "this": (bed.disk,)}[case.permission]
    request = Request(layout, wipe=wipe)
    seen = layout_run.foresee(request, machine)
    return seen, seen if case.permission == "check" else layout_run.apply(request, machine, lambda: False)


def check(bed: Bed, case: Case, folder: pathlib.Path) -> None:
    """Raise AssertionError where something else changes than may."""
    foreign = prepare(bed, case, folder)
    before, other = bed.now()
    seen, done = carry_out_case(bed, case)
    after, other_after = bed.now()
    both = changed(before, after), changed(other, other_after)
    if case.permission == "check" or seen.problem is not None:
        assert both == (set(), set()), f"changed, although nothing was to be done: {regions(both[0])}; {regions(both[1])}"
        assert done.done == (), "steps were done"
    if seen.problem is not None:
        assert seen.pending == (), f"steps are told although they are refused: {[step.says for step in seen.pending]}"
        assert done.problem is not None, "check mode refuses what the run does"
    lost = both[0] & foreign
    if case.permission != "this":
        assert not lost, f"somebody's data are gone at {regions(lost)}"
        finished = finished_rooms(bed, case)
        rooms = [PLACES[name] for name in ROOMS if name not in finished]
        own = [(0, TABLE), (SIZE * MIB - TABLE, TABLE), *rooms]
        beside = {at for at in both[0] if not any(start <= at < start + size for start, size in own)}
        assert case.state in ("empty", "emptied") or not beside, f"changed outside of what is unfinished: {regions(beside)}"
        assert not done.losses, f"losses without a permission: {done.losses}"
    elif lost:
        assert bed.disk in [loss.disk for loss in done.losses], "something is lost that is not told"
        if not seen.pending or seen.now is None:
            assert done.problem is None or done.done, done.problem


def finished_rooms(bed: Bed, case: Case) -> list[str]:
    """Return the partitions that have their final PARTUUID in the state of a case: all entries are in one sector of the table."""
    now, final = (bed.states[state][0].get(2 * SECTOR, bytes(SECTOR)) for state in (case.state, "finished"))
    return [name for at, name in enumerate(ROOMS) if now[128 * at + 16 : 128 * at + 32] == final[128 * at + 16 : 128 * at + 32]]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_nothing_changes_that_is_not_named(bed: Bed, tmp_path: pathlib.Path, batch: int) -> None:
    chance = random.Random(f"{SEED} {batch}")
    for _number in range(CASES // BATCHES):
        case = draw(bed, chance)
        try:
            check(bed, case, tmp_path / "mounted")
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from error


WHOLE = [name for name in (*TOOLS, *WRITTEN) if "raw data" not in name]


@pytest.mark.parametrize("permission", PERMISSIONS)
@pytest.mark.parametrize("content", WHOLE)
def test_a_disk_that_carried_a_layout_and_is_used_as_a_whole_is_kept(
    bed: Bed, tmp_path: pathlib.Path, content: str, permission: str
) -> None:
    """mdadm, pvcreate and mkswap leave a copy of our table; it is not ours any more."""
    case = Case(content, "disk", "finished", "none", (), permission)
    check(bed, case, tmp_path / "mounted")
    if permission == "this":
        return
    prepare(bed, case, tmp_path / "mounted")
    seen, done = carry_out_case(bed, case)
    if content == "md 0.90":
        # Its superblock lies outside of the table, all of which is whole: there is nothing to do.
        assert (seen.problem, seen.pending, done.done) == (None, (), ())
        return
    assert seen.problem is not None
    assert f"{bed.disk} is not empty; wiping it would destroy" in seen.problem
    assert f"name {bed.disk} in wipe" in seen.problem


@pytest.mark.parametrize("place", ["p1", "p2", "p3"])
@pytest.mark.parametrize("content", [*TOOLS, *WRITTEN, USED])
def test_what_somebody_put_on_unfinished_partitions_is_kept(bed: Bed, tmp_path: pathlib.Path, content: str, place: str) -> None:
    """At two moments of a run at which the partition is there, finished or not."""
    cases = [Case(content, place, state, "none", (), "none") for state in bed.states if state.startswith("after")]
    sensible = [case for case in cases if is_sensible(bed, case)]
    for case in random.Random(f"{SEED} {content} {place}").sample(sensible, min(2, len(sensible))):
        check(bed, case, tmp_path / "mounted")


def test_a_refusal_for_one_disk_keeps_all_others_from_being_written(bed: Bed, tmp_path: pathlib.Path) -> None:
    """One disk has a table of which a copy is torn, which would be written anew; the other one has somebody's data."""
    bed.put("finished")
    write(bed.disk, {SECTOR: bytes(SECTOR)})
    erase_as_tools_do(bed.other, 0, SIZE * MIB)
    run("mkfs.ext4", "-q", "-F", bed.other)
    before = bed.now()
    report = layout_run.apply(Request(bed.layouts[()]), LocalMachine(), lambda: False)
    assert report.problem is not None
    assert (report.done, report.pending) == ((), ())
    assert bed.now() == before


MOUNTED = {"ext4": 64, "ext3": 64, "ext2": 64, "xfs": 320, "btrfs": 120}


@pytest.mark.parametrize("kind", [*MOUNTED, "vfat", "f2fs"])
def test_each_file_system_tells_whether_it_was_mounted(loops: Loops, tmp_path: pathlib.Path, kind: str) -> None:
    """This kernel has no FAT and no F2FS: of these only what mkfs leaves is seen."""
    size = MOUNTED.get(kind, 64)
    device = new_disk(loops, size)
    run(*FILESYSTEMS[kind].make_command(device, "12ab-34cd" if kind == "vfat" else str(uuid.uuid4()), "", ()))
    assert trace_of_use(LocalMachine(), device, size * MIB, kind, left_by_tool(kind)) is None
    if kind in MOUNTED:
        with Mounted(device, tmp_path / "mounted"):
            pass
        assert trace_of_use(LocalMachine(), device, size * MIB, kind, left_by_tool(kind)) == "it was mounted"


@pytest.mark.parametrize("was", ["blank", "full"])
def test_a_closed_container_is_made_again_only_while_nothing_was_written_into_it(loops: Loops, was: str) -> None:
    """Real headers; this kernel opens none. What lay on the disk before is no use: it is cleared where the data of a container begin."""
    disk = new_disk(loops, SIZE)
    if was == "full":
        write(disk, sectors_of(random.Random(SEED).randbytes(SIZE * MIB)))
    explicit = schema(disk, {"name": "secret", "size": 40})
    explicit["luks"] = [{"name": "bareon-secret", "device": f"{disk}p1"}]
    explicit["fss"] = [{"device": "/dev/mapper/bareon-secret", "fs_type": "ext4", "mount": "none"}]
    layout, machine = parse_static_schema(explicit), LocalMachine(Key(b"a key of the test"))
    for step in plan_steps(layout, read_present(machine, layout), [disk]).steps:
        if isinstance(step, OpenLuks):
            break
        step.run(machine)
    present = read_present(machine, layout)
    again = plan_steps(layout, present)
    assert present.sealed == {}
    assert (again.again, again.refusals, again.losses) == (False, (), ())
    assert any(isinstance(step, FormatLuks) for step in again.steps)
    write(f"{disk}p1", {16 * MIB: b"\7" * SECTOR})
    opening = plan_steps(layout, read_present(machine, layout))
    assert (opening.again, opening.refusals, [type(step) for step in opening.steps]) == (True, (), [OpenLuks])
    before = content_of(disk)
    report = layout_run.apply(Request(layout), LocalMachine(Key(b"another one, of 16 letters")), lambda: False)
    assert report.problem is not None
    assert (report.done, content_of(disk)) == ((), before)
    wiping = plan_steps(layout, read_present(machine, layout), [disk])
    assert [content.device for loss in wiping.losses for content in loss.contents] == [f"{disk}p1"]


@pytest.mark.parametrize("permission", ["none", "this"])
def test_what_lies_at_the_end_of_a_partition_of_a_lost_table_is_seen(bed: Bed, tmp_path: pathlib.Path, permission: str) -> None:
    check(bed, Case("md 1.0", "p3", "empty", "none", (), permission), tmp_path / "mounted")


RAW = {4096: b"a database's own header".ljust(SECTOR, b"\1")}
"""A sector behind the first: what no tool knows the signature of."""


def unfinished_states(bed: Bed, room: str) -> list[str]:
    return [
        state for state in bed.states if state.startswith("after") and room not in finished_rooms(bed, Case("", "", state, "none", (), ""))
    ]


INSIDE = sectors_of(b"records".ljust(256, b"\2") * 1024, 1536 * 1024)
"""256 KiB that lie in neither end of a partition."""


@pytest.mark.parametrize("data", [RAW, INSIDE], ids=["a sector", "inside"])
@pytest.mark.parametrize("room", ["p2", "p3"])
def test_raw_data_keep_a_partition_on_which_no_tool_was_at_work(bed: Bed, room: str, data: Content) -> None:
    """The first partition is made first, so nothing was begun on the others as long as it is not finished."""
    begin, size = PLACES[room]
    states = [state for state in unfinished_states(bed, "p1") if state in unfinished_states(bed, room)]
    assert states
    for state in states:
        bed.put(state)
        erase_as_tools_do(bed.disk, begin, size)
        write(bed.disk, data, begin)
        before = bed.now()
        report = layout_run.apply(Request(bed.layouts[()]), LocalMachine(), lambda: False)
        assert report.problem is not None, state
        assert f"{bed.disk}{room} is unfinished, but somebody has used it" in report.problem
        assert (report.done, bed.now()) == ((), before)


def test_raw_data_all_over_a_partition_are_not_what_a_tool_left(bed: Bed) -> None:
    """Of the first partition the ends may be half made; mkfs writes less in between than somebody who fills it."""
    begin, size = PLACES["p1"]
    states = [state for state in unfinished_states(bed, "p1") if begin + 1024 not in bed.states[state][0]]
    assert states
    for state in states:
        bed.put(state)
        write(bed.disk, sectors_of(random.Random(SEED).randbytes(size - 4 * MIB), 2 * MIB), begin)
        before = bed.now()
        report = layout_run.apply(Request(bed.layouts[()]), LocalMachine(), lambda: False)
        assert report.problem is not None, state
        assert f"{bed.disk}p1 is unfinished, but somebody has used it" in report.problem
        assert (report.done, bed.now()) == ((), before)


def test_what_lies_inside_a_new_partition_of_before_is_no_sign_of_use(loops: Loops) -> None:
    """The disk is full of what may be destroyed: a run clears what the next one looks at before there is a partition."""
    disk = new_disk(loops, SIZE)
    write(disk, sectors_of(random.Random(SEED).randbytes(SIZE * MIB)))
    layout, machine = layout_of_one(disk), LocalMachine()
    steps = plan_steps(layout, read_present(machine, layout), [disk]).steps
    for step in steps:
        present = read_present(machine, layout)
        if step is not steps[0]:
            assert present.traces == {}, step.says
        step.run(machine)
    assert plan_steps(layout, read_present(machine, layout)).steps == ()


def layout_of_one(disk: str) -> Layout:
    spaces = [{"name": name, "size": size, "fs_type": "ext4", "mount": "none"} for name, (_begin, size) in ROOMS.items()]
    return parse_static_schema(schema(disk, *spaces[:2]))


MADE: dict[str, tuple[int, dict[str, t.Any]]] = {
    **{
        name: (size, {"fs_type": name, "mount": "none"})
        for name, size in {"ext2": 8, "ext4": 3000, "xfs": 320, "btrfs": 120, "swap": 8}.items()
    },
    "f2fs": (64, {"fs_type": "f2fs", "mount": "none"}),
    "vfat": (64, {"fs_type": "vfat", "mount": "none"}),
}


@pytest.mark.parametrize("kind", [*MADE, "LUKS"])
def test_what_a_tool_leaves_that_was_cut_off_before_its_signature_is_made_again(loops: Loops, kind: str) -> None:
    """All that the tool writes into both ends, but for the sectors of its signature."""
    size, keys = MADE.get(kind, (40, {}))
    disk = new_disk(loops, size + 40)
    explicit = schema(disk, {"name": "first", "size": size, **keys}, {"name": "second", "size": 16, "fs_type": "ext2", "mount": "none"})
    if kind == "LUKS":
        explicit["luks"] = [{"name": "bareon-first", "device": f"{disk}p1"}]
    layout, machine = parse_static_schema(explicit), LocalMachine(Key(b"a key of the test"))
    making = (OpenLuks,) if kind == "LUKS" else (FinishPartitions,)
    bare = kind == "LUKS"
    for step in plan_steps(layout, read_present(machine, layout)).steps:
        if isinstance(step, making) and (bare or 1 in getattr(step, "numbers", ())):
            break
        step.run(machine)
    run("wipefs", "--all", "--quiet", f"{disk}p1")
    with open(f"{disk}p1", "r+b") as file:
        file.write(bytes(SECTOR))
        os.fsync(file.fileno())
    present = read_present(machine, layout)
    assert present.traces == {}
    again = plan_steps(layout, present)
    assert (again.refusals, again.losses) == ((), ())
    assert again.steps


@pytest.mark.parametrize("options", [(), ("-O", "quota,project"), ("-O", "orphan_file"), ("-I", "128", "-N", "64"), ("-O", "^has_journal")])
def test_files_in_an_ext4_that_nobody_mounted_are_a_trace_of_use(loops: Loops, tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    device = new_disk(loops, 64)
    run("mkfs.ext4", "-q", "-F", *options, device)
    assert trace_of_use(LocalMachine(), device, 64 * MIB, "ext4", left_by_tool("ext4")) is None
    (tmp_path / "precious").write_bytes(b"data" * 5000)
    run("debugfs", "-w", "-R", f"write {tmp_path / 'precious'} precious", device)
    assert trace_of_use(LocalMachine(), device, 64 * MIB, "ext4", left_by_tool("ext4")) == "there are files in it"


@pytest.mark.parametrize("numbers", [("2",), ("1", "2", "3")], ids=["one", "all"])
@pytest.mark.parametrize("kind", ["ext4", "vfat"])
def test_a_partition_whose_entry_was_deleted_is_not_made_again(
    loops: Loops, tmp_path: pathlib.Path, kind: str, numbers: tuple[str, ...]
) -> None:
    disk = new_disk(loops, SIZE)
    made = {"fs_type": kind, "mount": "none"}
    layout = parse_static_schema(
        schema(disk, {"name": "first", "size": 8}, {"name": "second", "size": 24, **made}, {"name": "third", "size": 8})
    )
    assert layout_run.apply(Request(layout), LocalMachine(), lambda: False).problem is None
    if kind == "ext4":
        with Mounted(f"{disk}p2", tmp_path / "mounted") as mounted:
            (mounted / "precious").write_bytes(b"data" * 5000)
    run("sfdisk", "--quiet", "--no-reread", "--delete", disk, *numbers)
    for number in numbers:
        run("partx", "--delete", "--nr", number, disk)
    before = content_of(disk)
    for report in (layout_run.foresee(Request(layout), LocalMachine()), layout_run.apply(Request(layout), LocalMachine(), lambda: False)):
        assert report.problem is not None
        assert f"{kind} at 9 MiB lies where second is missing in the table of {disk}" in report.problem
        assert (report.pending, report.done) == ((), ())
    assert content_of(disk) == before
    wiping = layout_run.foresee(Request(layout, wipe=(disk,)), LocalMachine())
    assert [content.kind for loss in wiping.losses for content in loss.contents] == [kind]


@pytest.mark.parametrize("kind", ["xfs", "vfat"])
def test_a_clearing_that_was_cut_off_is_completed(loops: Loops, tmp_path: pathlib.Path, kind: str) -> None:
    """It is cut off behind wipefs, which erases magic bytes alone."""
    tools = tmp_path / "tools"
    tools.mkdir()
    disk = new_disk(loops, 400)
    options = {"schema": schema(disk, {"name": "first", "size": 320, "fs_type": kind, "mount": "none"})}
    stand_in(tools, f"mkfs.{kind}", f'{shutil.which(f"mkfs.{kind}")} "$@"; exit 1')
    assert disk in refuse(options, tools=tools)
    assert probe(f"{disk}p1")["TYPE"] == kind
    stand_in(tools, "wipefs", f'{shutil.which("wipefs")} "$@" || exit; case "$*" in *--all*) exit 1;; esac')
    assert "wipefs" in refuse(options, tools=tools)
    layout = parse_static_schema(options["schema"])
    plan = plan_steps(layout, read_present(LocalMachine(), layout))
    assert (plan.refusals, plan.losses) == ((), ())
    assert plan.steps
