# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a target cannot say of a plan, by space: an error, unless the caller has agreed to lose it."""

from __future__ import annotations

from collections.abc import Container

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.words import listed
from ....module_utils._schema.model import Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.lvm import EXTENT
from ....module_utils._storage.units import MIB
from ....module_utils._storage.unlock import PASSPHRASE, SECURE_BOOT_PCR, TPM2

_BY_CONTENT = frozenset((gpt.LINUX, gpt.SWAP, gpt.RAID, gpt.LVM, gpt.LUKS))
"""Types that only repeat the partition's contents, which are found without them."""


class Losses:
    """Collects what `target` cannot say; `lossy`: the caller would rather lose it."""

    def __init__(self, target: str, *, lossy: bool) -> None:
        self._target, self._lossy = target, lossy
        self._refused = Mistakes()
        self._losses = Mistakes()
        self._notes: list[str] = []

    def lose(self, space: str, reason: str) -> None:
        """Remember that something of a space is left out; `reason` is a sentence about the target."""
        self._losses.add(space, reason)

    def refuse(self, space: str, reason: str) -> None:
        """Remember what must not be left out, whatever the caller agrees to."""
        self._refused.add(space, reason)

    def note(self, says: str) -> None:
        """Remember what is not lost, but to be known."""
        self._notes.append(says)

    def check(self) -> tuple[str, ...]:
        """Return warnings; raises InputError with every loss that was not agreed to."""
        refused = Mistakes()
        refused.extend(self._refused.found())
        if not self._lossy:
            for loss in self._losses.found():
                refused.add(loss.place, f"{loss.says}; with lossy: true it is left out")
        refused.check()
        lost = [f"{self._target}: {loss}; left out" for loss in self._losses.found()]
        return tuple(dict.fromkeys([*lost, *(f"{self._target}: {note}" for note in self._notes)]))


def lose_types(layout: Layout, losses: Losses, reason: str, known: Container[str]) -> None:
    """Lose the types of partitions that a target does not know, but for those that only say what lies there."""
    for partition in layout.partitions():
        if partition.type not in _BY_CONTENT and partition.type not in known:
            losses.lose(partition.space, f"its type is {partition.type}; {reason}")


def lose_labels(layout: Layout, losses: Losses, installer: str) -> None:
    """Lose the names that partitions were to have in the table."""
    for partition in layout.partitions():
        if partition.own_label and not partition.keep_data:
            losses.lose(partition.space, f"{installer} gives partitions no names, so not {partition.own_label}")


def lose_extents(layout: Layout, losses: Losses, installer: str) -> None:
    """Lose the extents of volume groups that are not LVM's default."""
    for group in layout.groups:
        if group.extent // MIB != EXTENT and not group.keep_data:
            losses.lose(group.space, f"{installer} makes extents of {EXTENT} MiB, not of {group.extent // MIB}")


def lose_options_of_volumes(layout: Layout, losses: Losses, installer: str) -> None:
    """Lose what logical volumes were to be made with."""
    for volume in layout.volumes:
        if volume.options and not volume.keep_data:
            losses.lose(volume.space, f"{installer} makes logical volumes without {' and '.join(volume.options)}")


def lose_array_options(layout: Layout, losses: Losses, who: str) -> None:
    """Lose what arrays are made with beyond their levels."""
    for array in layout.arrays:
        for key, value in array.options.given().items() if not array.keep_data else ():
            losses.lose(array.space, f"{who} leaves the {key} of an array to md, so that it may not be {value}")


def lose_subvolumes(layout: Layout, losses: Losses, installer: str) -> None:
    """Lose the subvolumes of Btrfs."""
    for filesystem in layout.filesystems:
        if filesystem.subvolumes:
            names = ", ".join(subvolume.name for subvolume in filesystem.subvolumes)
            losses.lose(filesystem.space, f"{installer} cannot make subvolumes such as {names}")


def lose_methods(layout: Layout, losses: Losses, installer: str, able: Container[str] = ()) -> None:
    """Lose LUKS unlock methods other than the key at its creation; `able` are kinds of methods that are written, without a PIN."""
    for container in layout.containers:
        others = [method.words for method in container.unlock if method.kind != PASSPHRASE and (method.kind not in able or method.pin)]
        if others and not container.keep_data:
            losses.lose(
                container.space, f"{installer} makes LUKS with one key, not with {listed(others)}; disk_keys adds that when the system runs"
            )


def note_registers(layout: Layout, losses: Losses) -> None:
    """Warn that systemd-repart needs the registers of a TPM as an option."""
    for container in layout.containers:
        for method in container.unlock:
            if method.kind == TPM2 and method.pcrs != (SECURE_BOOT_PCR,):
                option = f"--tpm2-pcrs={'+'.join(map(str, method.pcrs))}"
                losses.note(f"{container.space}: systemd-repart takes the registers of the TPM from its option {option}")


def lose_quotas(layout: Layout, losses: Losses, installer: str) -> None:
    """Lose the quotas of subvolumes."""
    for filesystem in layout.filesystems:
        for subvolume in filesystem.subvolumes:
            if subvolume.limit is not None:
                losses.lose(filesystem.space, f"{installer} sets no quotas, such as {subvolume.limit // MIB} MiB for {subvolume.name}")


def note_uuids(layout: Layout, losses: Losses, installer: str) -> None:
    """Warn that partitions get other UUIDs than those of the plan."""
    if any(partition.own_uuid and not partition.keep_data for partition in layout.partitions()):
        losses.note(f"{installer} gives partitions UUIDs of its own, not those of the plan")


def note_container_names(layout: Layout, losses: Losses, installer: str) -> None:
    """Warn that LUKS containers are opened by other names than those of the plan."""
    for container in layout.containers:
        losses.note(f"{container.space}: {installer} chooses the name of the LUKS container, which is {container.name} in the plan")


def note_boot_flags(layout: Layout, losses: Losses, installer: str) -> None:
    """Warn of partitions that do not get the flag by which a BIOS finds what it is to start."""
    for partition in layout.partitions():
        if partition.boots and not partition.keep_data:
            losses.note(f"{partition.space}: {installer} sets no flag legacy_boot, which GRUB does without")
