# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options by which a schema could have a tool reach a disk that it does not name, or a file of the host.

They follow from the tables of allowed words, so that an option that is added there is tried here as well, and are more than these.
"""

from __future__ import annotations

import string
import typing as t
from collections.abc import Iterator

from ansible_collections.bareon.allocator.plugins.module_utils._storage import zfs
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options import mounts
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.programs import Program
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.values import Keys

KNOWN_TO_DESTROY = {
    "ext4": ("-F {0}", "-J device={0}", "-O journal_dev {0}", "-F -F {0} 100M", "-d {0}", "-z {0}"),
    "xfs": ("-l logdev={0}", "-f -l logdev={0},size=64m", "-r rtdev={0}", "-d name={0}", "-f {0}", "-p {0}", "-c options={0}"),
    "btrfs": ("-f {0}", "{0}", "-K -f {0}", "-r {0}", "-- {0}", "-d raid0 {0}"),
    "f2fs": ("-f -c {0}", "-c{0}", "-fc {0}", "-f {0} 100"),
    "vfat": ("{0}", "-C {0} 1000", "-I {0}", "-l {0}", "-m {0}"),
    "swap": ("-f {0}", "-F {0}", "{0} 100"),
}
"""What these programs write to, or read from, beside the device that they are given."""


class Hostile(t.NamedTuple):
    """A text for a key of a space or of an entry of `fss` with this file system."""

    fs_type: str
    key: str
    text: str


def hostile_options(other: str) -> Iterator[Hostile]:
    """Give texts that name `other`, a disk or a file, in every place of a command line and of a list of mount options."""
    for fs_type, row in FILESYSTEMS.items():
        for text in (*KNOWN_TO_DESTROY.get(fs_type, ()), *KNOWN_TO_DESTROY["ext4"]):
            yield Hostile(fs_type, "fs_options", text.format(other))
        for text in dict.fromkeys(_command_lines(row.options, other)):
            yield Hostile(fs_type, "fs_options", text)
        for text in dict.fromkeys(_mount_options(fs_type, other)):
            yield Hostile(fs_type, "mount_options", text)


def hostile_properties(other: str) -> Iterator[tuple[str, str]]:
    """Give properties of ZFS that name a disk or a file."""
    for name in (*zfs.PROPERTIES, *sorted(zfs.OF_POOLS), *sorted(zfs.NOT_HERE), "-o", "feature@encryption", "cachefile=x"):
        if name not in ("sharenfs", "sharesmb"):
            yield name, other


def _command_lines(program: Program, other: str) -> Iterator[str]:
    short = [f"-{letter}" for letter in string.ascii_letters + string.digits]
    for flag in dict.fromkeys((*program.flags, *program.refused, *program.spellings, *short, "--device", "--offset", "--help")):
        yield from (f"{flag} {other}", f"{flag}{other}", f"{flag}={other}", f"{flag} -- {other}")
        kind = program.flags.get(flag)
        if isinstance(kind, Keys):
            for key in (*kind.keys, *kind.refused, "device", "logdev", "rtdev", "name", "file", "journal"):
                yield from (f"{flag} {key}={other}", f"{flag}{key}={other}", f"{flag} {key}=1,{other}")
    yield from (other, f"-- {other}", f"'{other}'", f"-{other}", f"\n{other}", f"; dd of={other}", f"$(cat {other})", f"`cat {other}`")


def _mount_options(fs_type: str, other: str) -> Iterator[str]:
    for key in (*mounts.known(fs_type), *mounts.REFUSED, "verity.hashdevice", "x-systemd.device", "dev", "source"):
        # What no program acts on may be any word.
        if key != "comment":
            yield from (f"{key}={other}", f"defaults,{key}={other}", f"{key},{other}")
    for between in (" ", "\n", "\t", "\r", "\0", " # ", ","):
        yield f"defaults{between}{other}"
    yield from (other, f"defaults\n{other} /x ext4 defaults")
