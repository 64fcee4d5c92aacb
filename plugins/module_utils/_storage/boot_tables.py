# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables that a start of a system reads, with the lines that they are to have -> the texts that change. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .crypttab import Container, with_containers
from .fstab import Entry, with_entries, without_devices
from .mdadm_conf import ArrayLine, with_arrays

FSTAB = "/etc/fstab"
CRYPTTAB = "/etc/crypttab"
MDADM_CONFS = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")
"""Where Debian and those like it have it, and all others."""
BOOT_SETTINGS = "/etc/bareon/boot_settings.json"
"""Where a host remembers what its lines were made from. In /etc as they are, not below /var, which may be another file system."""

_FOR_ALL, _FOR_ROOT = 0o644, 0o600


@dataclass(frozen=True)
class Tables:
    """The lines that tables are to have. `image_sources`: lines of an image's fstab that stay, by source; None keeps all lines."""

    fstab: tuple[Entry, ...] = ()
    crypttab: tuple[Container, ...] = ()
    arrays: tuple[ArrayLine, ...] = ()
    mdadm_conf: str = MDADM_CONFS[0]
    image_sources: t.Optional[tuple[str, ...]] = None
    boot_settings: t.Optional[str] = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all tables."""
        return (FSTAB, CRYPTTAB, self.mdadm_conf, BOOT_SETTINGS)


@dataclass(frozen=True)
class Change:
    """A table that changes: `mode` is that of a new one, `kept` says whether the old text may be kept as a backup."""

    path: str
    before: str
    after: str
    mode: int = _FOR_ALL
    kept: bool = True


def changed_tables(wanted: Tables, present: Mapping[str, t.Optional[str]]) -> tuple[Change, ...]:
    """Return the tables that change, given the texts of all (None: there is none); raises ValueError for what a table has no form for."""
    return tuple(_changes(wanted, {path: text or "" for path, text in present.items()}))


def _changes(wanted: Tables, texts: Mapping[str, str]) -> Iterator[Change]:
    fstab = texts[FSTAB]
    if wanted.image_sources is not None:
        fstab = without_devices(fstab, wanted.image_sources)
    after = {
        FSTAB: with_entries(fstab, wanted.fstab) if wanted.fstab else fstab,
        CRYPTTAB: with_containers(texts[CRYPTTAB], wanted.crypttab) if wanted.crypttab else texts[CRYPTTAB],
        wanted.mdadm_conf: with_arrays(texts[wanted.mdadm_conf], wanted.arrays) if wanted.arrays else texts[wanted.mdadm_conf],
    }
    for path, text in after.items():
        if text != texts[path]:
            yield Change(path, texts[path], text)
    if wanted.boot_settings is not None and wanted.boot_settings != texts[BOOT_SETTINGS]:
        yield Change(BOOT_SETTINGS, texts[BOOT_SETTINGS], wanted.boot_settings, _FOR_ROOT, kept=False)
