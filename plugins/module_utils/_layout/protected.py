# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks are protected: by the option `protect` or by the host's own list. A protected disk is never written to, whatever `wipe` says.

An entry is an id of a disk (any link of /dev/disk/by-id or by-path, with or without its folder), a serial number, a WWN, or the label of
something on the disk, or its UUID. Doubt protects: an entry counts with and without what looks like a comment behind it, and a tag as in
fstab, quotes or a folder of links around it, in capitals as in small letters; and a link to a partition or to an array protects all disks
below.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .._facts.host import Host
from .._facts.reader import Notes, read_contents, read_devices
from .._facts.select import Disk, find_disks
from .._facts.tree import Device, Tree
from .._steps.machine import StepFailed

PROTECTED_FILE = "/etc/bareon/protected"
OPTION = "protect"

_COMMENT = re.compile(r"\s#.*")
_TAG = re.compile(r"(?:LABEL|UUID|PARTLABEL|PARTUUID|ID|SERIAL|WWN)=(?P<value>.+)", re.IGNORECASE)
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<value>.+)(?P=quote)""")
_LINK = re.compile(r"(?:/*dev/+)?disk/+by-[a-z]+/+(?P<value>.+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\x([0-7][0-9a-f])", re.IGNORECASE)
"""What udev writes in links for what their names cannot have."""
_UNSEEN = "Cf"
"""Characters without a width, which come along when an entry is copied from a page."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ufffd]")
_WWN = re.compile(r"(?:wwn-|nvme-)?(?:(?:naa|eui|nguid|uuid)\.|0x)?(?P<digits>[0-9a-f-]{16,})")


@dataclass(frozen=True)
class Protection:
    """An entry of a list of protected disks; `origin` is the option or the file, with the line, that it is from."""

    entry: str
    origin: str

    @property
    def words(self) -> str:
        """What protects, and where from."""
        return f"{self.entry!r} of {self.origin}"

    @property
    def spellings(self) -> frozenset[str]:
        """Return what the entry may mean: the whole line, and the line without a comment, a tag and quotes."""
        found = {self.entry, _COMMENT.sub("", self.entry).strip()}
        for form in (_QUOTED, _TAG, _QUOTED, _LINK):
            found |= {match["value"].strip() for match in map(form.fullmatch, found) if match is not None}
        found |= {_ESCAPED.sub(lambda match: chr(int(match[1], 16)), spelling) for spelling in found}
        return frozenset(_plain(spelling) for spelling in found) - {""}

    @property
    def is_node(self) -> bool:
        """Whether it is a node such as /dev/sda, which can be another disk after a reboot."""
        return self.entry.startswith("/dev/") and not self.entry.startswith("/dev/disk/")


def read_protections(host: Host, option: Sequence[str]) -> tuple[tuple[Protection, ...], tuple[str, ...]]:
    """Return the entries of the option and of the host's file, and mistakes: a list that cannot be read is not an empty one."""
    found = [Protection(entry.strip(), OPTION) for entry in option]
    mistakes = [f"{OPTION}[{number}]: {_wrong(entry)}" for number, entry in enumerate(option) if _wrong(entry.strip())]
    try:
        text = host.read_setting(PROTECTED_FILE) or ""
    except (OSError, ValueError) as error:
        says = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return tuple(found), (*mistakes, f"{PROTECTED_FILE}: cannot be read ({says}), so it is not known which disks are protected")
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            found.append(Protection(entry, f"{PROTECTED_FILE}:{number}"))
            if _wrong(entry):
                mistakes.append(f"{PROTECTED_FILE}:{number}: {_wrong(entry)}")
    return tuple(found), tuple(mistakes)


def protections_in_force(host: Host, option: Sequence[str], so_far: str = "") -> tuple[Protection, ...]:
    """Return the entries as they are now, for a run that may have waited for its lock.

    Raises StepFailed where they cannot be read; `so_far` says in front what was done until then.
    """
    found, mistakes = read_protections(host, option)
    if mistakes:
        raise StepFailed(f"{so_far}{'; '.join(mistakes)}")
    return found


def _wrong(entry: str) -> str:
    if not entry.strip():
        return "must be the id, serial number or WWN of a disk, or the label of something on it, not empty"
    return f"must be text without control characters, not {entry!r}" if _CONTROL.search(entry) else ""


def protections_of(disk: Disk, tree: Tree, protections: Iterable[Protection]) -> tuple[Protection, ...]:
    """Return the entries that protect a disk; none: it is not protected."""
    names = frozenset(map(_plain, _names(disk, tree)))
    identities = frozenset(_identities(disk))
    return tuple(
        each for each in protections if each.spellings & names or {_comparable(spelling) for spelling in each.spellings} & identities
    )


def protections_of_node(host: Host, node: str, protections: Sequence[Protection]) -> tuple[Protection, ...]:
    """Return the entries that protect a disk which a node, or a link, is on; the host is read where there are any entries."""
    if not protections:
        return ()
    notes: Notes = []
    tree = read_devices(host, notes)
    disks = find_disks(tree, notes)
    tree = read_contents(host, tree, [disk.device.name for disk in disks], notes)
    device = tree.by_node(host.resolve(node) or node)
    below = [disk for disk in disks if device is not None and device.name in {part.name for part in _devices(disk, tree)}]
    return tuple(dict.fromkeys(each for disk in below for each in protections_of(disk, tree, protections)))


def unmatched(disks: Iterable[Disk], tree: Tree, protections: Sequence[Protection]) -> Iterator[str]:
    """Give a warning for each entry that protects no disk, and for each that may protect another one after a reboot."""
    disks = tuple(disks)
    for each in protections:
        protected = [disk for disk in disks if protections_of(disk, tree, [each])]
        if not protected:
            yield f"{each.words} protects no disk: none here has this id, serial number, WWN, or label on it"
        elif (each.is_node or each.entry == protected[0].device.name) and protected[0].id != each.entry:
            yield f"{each.words} can be another disk after a reboot; name {protected[0].id}"


def _names(disk: Disk, tree: Tree) -> Iterator[str]:
    devices = tuple(_devices(disk, tree))
    links = {link for device in devices for link in device.links} | {disk.id, *disk.links} | ({disk.path} if disk.path else set())
    yield from links
    yield from (link.rsplit("/", 1)[-1] for link in links if link.startswith("/dev/disk/"))
    for device in devices:
        there = [found for found in (device.filesystem, *device.signatures) if found is not None]
        entry = (device.partition.name, device.partition.uuid) if device.partition is not None else ()
        labels = (*(found.label for found in there), *(found.uuid for found in there), *entry)
        volume = f"{device.group}/{device.title}" if device.group and device.title else ""
        nodes = (device.dev, device.name, *([volume, f"/dev/{volume}"] if volume else []))
        yield from (name for name in (*nodes, *labels) if name)


def _devices(disk: Disk, tree: Tree) -> Iterator[Device]:
    """Give the devices that a disk is, by each path, and all that is built on it."""
    for name in {device.name for device in (disk.device, *disk.paths)}:
        yield tree.devices[name]
        yield from tree.descendants(name)


def _identities(disk: Disk) -> Iterator[str]:
    for row in (disk.source.row, disk.device.row, *(path.row for path in disk.paths)):
        yield from (_comparable(str(row[column])) for column in ("serial", "wwn") if row.get(column))


def _plain(text: str) -> str:
    """Return a text in the form in which those are alike that people take for one: letters with accents, capitals, what nobody sees."""
    return unicodedata.normalize("NFC", "".join(letter for letter in text if unicodedata.category(letter) != _UNSEEN).casefold())


def _comparable(text: str) -> str:
    """Return a serial number or a WWN in the form in which all tools' are alike."""
    plain = text.strip().lower()
    wwn = _WWN.fullmatch(plain)
    return wwn["digits"].replace("-", "") if wwn else plain
