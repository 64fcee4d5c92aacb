# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What steps destroy, reported before the first step: for every disk its contents, and why they may go; and the digest of that. Pure.

Our own unfinished work is no loss: a run that was cut off made it, and nobody has used it.
"""

from __future__ import annotations

import hashlib
import json
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from .._facts.present import Present
from .._facts.tree import Device, Filesystem
from .._storage import zfs
from .._storage.units import MIB
from .disks import FoundDisk

_ARRAYS = ("raid", "linear", "md")
_DIGEST_BYTES = 16
_WIPED = "the disk is named in wipe"
_BEGUN = "a run that was cut off has replaced its partition table already"


@dataclass(frozen=True)
class Loss:
    """One thing that is destroyed: what `kind` of content is on `device` (a node of this boot, or a name), of `size` MiB.

    `last_mounted` is where a file system says that it was mounted last, or this host's fstab has it; `part_of` the array or group of the
    member or volume, `host` the one that made that.
    """

    device: str
    kind: str
    label: str
    size: int
    last_mounted: str
    part_of: str
    host: str = ""

    @property
    def words(self) -> str:
        """The loss in words."""
        label = f" {self.label!r}" if self.label else ""
        more = [f"last mounted on {self.last_mounted}"] if self.last_mounted else []
        more += [f"of {self.part_of}"] if self.part_of else []
        more += [f"made by {self.host}"] if self.host else []
        return f"{self.kind}{label} on {self.device} ({', '.join([f'{self.size} MiB', *more])})"


@dataclass(frozen=True)
class DiskLoss:
    """All that is destroyed on a disk, and why it may go."""

    disk: str
    why: str
    contents: tuple[Loss, ...]


def find_losses(
    present: Present,
    disks: Sequence[FoundDisk],
    roots: Iterable[Device],
    own: Collection[str],
    cleared: Mapping[str, Iterable[tuple[int, str]]],
) -> tuple[DiskLoss, ...]:
    """Return what is destroyed with `roots` (disks, partitions, volumes), by disk; `own` are the names of our own unfinished work.

    `cleared` are, by name, signatures of disks as a whole that are destroyed with their partitions: where, and of which type.
    """
    losses: dict[str, dict[str, Loss]] = {}
    for name, signatures in cleared.items():
        whole = present.tree.devices[name]
        for offset, kind in signatures:
            losses.setdefault(name, {})[f"{name}@{offset}"] = Loss(str(whole.dev), kind, "", whole.size // MIB, "", "")
    for root in roots:
        if root.name not in own:
            for device in _all_on(present, root, own):
                for disk in present.disks_below(device.name):
                    losses.setdefault(disk, {}).setdefault(device.name, _loss(present, device))
    known = {disk.device.name: disk for disk in disks}
    return tuple(
        DiskLoss(
            known[name].desired.id if name in known else name,
            _WIPED if name in known and known[name].may_wipe else _BEGUN,
            tuple(found.values()),
        )
        for name, found in sorted(losses.items())
    )


def _all_on(present: Present, root: Device, own: Collection[str]) -> Iterator[Device]:
    """Give a device and what is built on it, as far as there is anything to lose; an empty disk has nothing."""
    for device in (root, *present.tree.descendants(root.name)):
        if device.name not in own and not device.is_part and (device.partition is not None or device.kind == "lvm" or _kind(device)):
            yield device


def _loss(present: Present, device: Device) -> Loss:
    volume = present.physical_on(device.name)
    group = volume.group if volume is not None else device.group
    array = next((child for child in present.tree.children(device.name) if child.kind.startswith(_ARRAYS)), None)
    pool = device.filesystem if device.filesystem is not None and device.filesystem.type == zfs.MEMBER else None
    part_of = f"the array {array.title or array.dev}" if array is not None else f"the volume group {group}" if group else _named_pool(pool)
    label = device.filesystem.label if device.filesystem is not None else None
    return Loss(
        device=device.dev or device.title or device.name,
        kind=_kind(device) or "a partition or volume with unknown content",
        label=label or (device.partition.name if device.partition is not None else None) or "",
        size=(device.partition.size if device.partition is not None else device.size) // MIB,
        last_mounted=present.last_mounts.get(device.name, ""),
        part_of=part_of,
        host=_maker_of(present, group, array or device),
    )


def _named_pool(found: t.Optional[Filesystem]) -> str:
    return f"the ZFS pool {found.label or found.uuid}" if found is not None else ""


def _maker_of(present: Present, group: t.Optional[str], array: Device) -> str:
    """Return the name of the host that made a group's volumes, or an array: md has it before the colon of the array's name."""
    made = (volume.host for volume in present.logical if volume.group == group and volume.host)
    return next(made, "") if group else (array.title or "").rpartition(":")[0] if array.kind.startswith(_ARRAYS) else ""


def _kind(device: Device) -> str:
    if device.table is not None:
        return f"{device.table.type} table"
    if device.filesystem is not None:
        return device.filesystem.type
    if device.signatures:
        return device.signatures[0].type
    return device.remains.words if device.remains is not None else ""


def together(earlier: Sequence[DiskLoss], later: Iterable[DiskLoss]) -> tuple[DiskLoss, ...]:
    """Return what two rounds of a run destroy: the later one does not see any more what the earlier one has destroyed."""
    losses = {loss.disk: loss for loss in earlier}
    for loss in later:
        known = losses.get(loss.disk, loss)
        losses[loss.disk] = replace(known, contents=tuple(dict.fromkeys((*known.contents, *loss.contents))))
    return tuple(losses.values())


def digest(losses: Sequence[DiskLoss]) -> str:
    """Return 32 hexadecimal digits over all that is destroyed: the same for the same things, and others for others."""
    plain = json.dumps([asdict(loss) for loss in losses], sort_keys=True)
    return hashlib.blake2b(plain.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def plain_losses(losses: Sequence[DiskLoss]) -> dict[str, t.Any]:
    """Return what is destroyed as results have it: `destroys`, by disk, and `destroys_digest`."""
    return {"destroys": [asdict(loss) for loss in losses], "destroys_digest": digest(losses)}


def why_unconfirmed(confirm: t.Optional[str], losses: Sequence[DiskLoss]) -> t.Optional[str]:
    """Return a refusal where another digest than that of the losses was confirmed; None also where none is to be confirmed."""
    found = digest(losses)
    if confirm in (None, found):
        return None
    return f"confirm is {confirm}, but the digest of what would be destroyed now is {found}. {paragraph(losses)}"


def paragraph(losses: Sequence[DiskLoss]) -> str:
    """Return one paragraph for a person: what is destroyed, disk by disk."""
    disks = (f"on {loss.disk} ({loss.why}): {'; '.join(content.words for content in loss.contents)}" for loss in losses)
    return f"Destroyed for good: {'. And '.join(disks)}."
