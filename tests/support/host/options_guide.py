# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the tables of allowed words into the guide to options: `make guide`. A test compares them."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options import btrfs, mounts
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.datasets import PROPERTIES
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.programs import Program
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.values import Keys, Kind, Listed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "options.md"
MARK = "<!-- tables: written by make guide -->"


def tables() -> str:
    """Return all tables as Markdown."""
    return "\n".join([*_programs(), *_mounts(), *_properties()])


def written() -> str:
    """Return the page with the tables as they are now."""
    return f"{PAGE.read_text(encoding='utf-8').partition(MARK)[0]}{MARK}\n\n{tables()}\n"


def _programs() -> Iterator[str]:
    yield from ("## What programs may be given", "", "`fs_options` of a space or of an entry of `fss`, by `fs_type`.", "")
    programs: dict[str, Program] = {}
    for row in FILESYSTEMS.values():
        programs.setdefault("ext2, ext3, ext4" if row.name.startswith("ext") else row.name, row.options)
    for names, program in programs.items():
        yield from (f"### {names}", "", "| option | value |", "| --- | --- |")
        yield from (f"| {_spelled(flag, program)} | {_worded(kind)} |" for flag, kind in program.flags.items())
        yield from ("", "| not given | use instead |", "| --- | --- |")
        yield from (f"| {_spelled(flag, program)} | {_escaped(refused.instead)} |" for flag, refused in program.refused.items())
        for flag, kind in program.flags.items():
            if isinstance(kind, (Keys, Listed)):
                yield from (f"| `{flag}` `{word}` | {_escaped(says)} |" for word, says in kind.refused.items())
        yield ""
    yield from (
        f"A Btrfs on several disks (`type: btrfs`) takes the same but for `-d` and `-m`: {btrfs.ON_SEVERAL.refused['-d'].instead}.",
        "",
    )


def _spelled(flag: str, program: Program) -> str:
    return ", ".join(f"`{name}`" for name in (flag, *(other for other, name in program.spellings.items() if name == flag)))


def _worded(kind: Kind | None) -> str:
    if kind is None:
        return ""
    if isinstance(kind, Keys):
        keys = [f"`{key}`" + (f" {_worded(value)}" if value is not None else "") for key, value in kind.keys.items()]
        return "keys: " + "; ".join(keys)
    alone = ", or nothing" if kind.optional else ""
    return _escaped(kind.wanted) + alone


def _mounts() -> Iterator[str]:
    yield from ("## What mounts may have", "", "`mount_options` of a space, `fstab_options` of a static schema and of Bareon's list.", "")
    everywhere = _in_all()
    yield from ("### All file systems", "", *_listed(everywhere), "")
    for fs_type in ("ext4", "xfs", "btrfs", "f2fs", "vfat"):
        title = "ext2, ext3, ext4" if fs_type == "ext4" else fs_type
        own = {key: kind for key, kind in mounts.known(fs_type).items() if key not in everywhere or everywhere[key] != kind}
        yield from (f"### Mounts of {title}", "", *_listed(own), "")
    yield from ("### Swap", "", *_listed({key: kind for key, kind in mounts.known("swap").items() if everywhere.get(key, "") != kind}), "")
    yield from ("With it go `defaults`, `sw`, `auto`, `noauto`, `nofail`, `_netdev`, `comment` and `x-systemd.`, as above.", "")
    yield from (
        "| not given | use instead |",
        "| --- | --- |",
        *(f"| `{key}` | {_escaped(says)} |" for key, says in mounts.REFUSED.items()),
        "",
    )


def _in_all() -> dict[str, Kind | None]:
    every = [mounts.known(fs_type) for fs_type in FILESYSTEMS if fs_type != "swap"]
    return {key: kind for key, kind in every[0].items() if all(key in known and known[key] == kind for known in every)}


def _listed(known: Mapping[str, t.Any]) -> Iterator[str]:
    """Give the options without values in one paragraph, the others in a table."""
    alone = [f"`{key}`" for key, kind in known.items() if kind is None]
    valued = [f"| `{key}` | {_worded(kind)} |" for key, kind in known.items() if kind is not None]
    yield from ([", ".join(alone)] if alone else [])
    yield from ["", "| option | value |", "| --- | --- |", *valued] if valued else []


def _properties() -> Iterator[str]:
    yield from (
        "## What datasets of ZFS may have",
        "",
        "`properties` of a zpool and of its `datasets`, beside your own, which have a colon.",
        "",
    )
    yield from ("| property | value |", "| --- | --- |")
    yield from (f"| `{name}` | {_worded(kind)} |" for name, kind in PROPERTIES.items())


def _escaped(text: str) -> str:
    return re.sub(r"([|*_])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
