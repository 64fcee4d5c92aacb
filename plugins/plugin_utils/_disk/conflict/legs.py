# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would help a space that needs more drives than it may use: other disks, more disks, or fewer legs."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .remedies import Entry, Remedy, TooFewDrives, container_of

_RESTRICTIONS = ("disks", "avoid_disks")
_MOST_ADDED = 64
"""Disks: what lacks more is not mended by adding disks to the machine."""
_OF_ARRAYS = ("level", "legs", "spares", "chunk", "layout", "bitmap", "write_mostly")
Keys = Mapping[str, t.Any]


def ways_out(lack: TooFewDrives, schema: Sequence[Entry]) -> list[list[Remedy]]:
    """Return remedies; of those in one list the first that helps is enough."""
    entry = next((entry for entry in schema if entry.get("id") == lack.name), None)
    if entry is None:
        return []
    owner = entry if _restricted(entry) else container_of(lack.name, schema) or entry
    given = _restricted(owner)
    says = f"let {owner.get('id')} use any disk, without {' and '.join(given)}"
    free = Remedy((says,), keys={str(owner.get("id")): dict.fromkeys(given)})
    missing, in_all = lack.legs - lack.usable, max(0, lack.legs - lack.drives)
    more = [Remedy(added={lack.like: missing})] if missing <= _MOST_ADDED else []
    more += [free.and_then(Remedy(added={lack.like: in_all}))] if given and 0 < in_all <= _MOST_ADDED else []
    fewer = []
    for keys in _fewer_legs(entry, lack) if lack.usable else ():
        said = " and ".join(f"{key}: {value}" for key, value in keys.items() if value is not None)
        fewer.append(Remedy((f"plan {lack.name} with {said}",), keys={lack.name: keys}))
    return [[free] if given and not in_all else [], fewer, more]


def _restricted(entry: Entry) -> list[str]:
    return [key for key in _RESTRICTIONS if entry.get(key) is not None]


def _fewer_legs(entry: Entry, lack: TooFewDrives) -> Iterator[Keys]:
    """Give keys with which a space lies on as many drives as it may use; what its type does not allow is no input."""
    legs, kind = (lack.legs - lack.spares) // max(1, lack.copies), entry.get("type")
    if lack.copies and lack.usable >= legs:
        yield {"count": lack.usable // (lack.legs // lack.copies) or 1}
    elif kind == "lv":
        yield {"stripes": lack.usable}
    else:
        if lack.usable >= legs:
            yield {"spares": lack.usable - legs}
        spares = {"spares": 0} if lack.spares else {}
        yield {"legs": lack.usable, **spares}
        if kind == "zpool":
            yield {"vdev": "mirror" if lack.usable > 1 else "stripe", "legs": lack.usable, **spares}
        elif lack.usable > 1:
            yield {"level": "raid1", "legs": lack.usable, **spares}
        else:
            gone = {key: None for key in _OF_ARRAYS if key in entry}
            yield {"type": "partition", **({"fs_type": "btrfs"} if kind == "btrfs" else {}), **gone}
