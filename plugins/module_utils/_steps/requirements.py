# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What steps need of a host: tools, with the packages that have them, and abilities of the kernel. Asked for before anything is changed."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping

from .._facts.host import Host
from .._storage.filesystems import FILESYSTEMS, SWAP, packages_of_tools
from .._storage.zfs import LIST_POOLS
from . import kinds
from .kinds import Step
from .machine import Machine

_PACKAGES = {
    "sfdisk": ("fdisk", "util-linux"),
    "partx": ("util-linux", "util-linux"),
    "wipefs": ("util-linux", "util-linux"),
    "blkid": ("util-linux", "util-linux"),
    "unshare": ("util-linux", "util-linux"),
    "mount": ("mount", "util-linux"),
    "dd": ("coreutils", "coreutils"),
    "kpartx": ("kpartx", "kpartx"),
    "dmsetup": ("dmsetup", "device-mapper"),
    "mdadm": ("mdadm", "mdadm"),
    "cryptsetup": ("cryptsetup-bin", "cryptsetup"),
    "pvcreate": ("lvm2", "lvm2"),
    "thin_check": ("thin-provisioning-tools", "device-mapper-persistent-data"),
    "cache_check": ("thin-provisioning-tools", "device-mapper-persistent-data"),
    "zpool": ("zfsutils-linux (of contrib)", "zfs (of OpenZFS's repository)"),
    **packages_of_tools(),
}
"""Tools and their packages, Debian's and Red Hat's."""

_LVM_KINDS = (
    kinds.ActivateGroup,
    kinds.DeactivateGroup,
    kinds.CreatePhysicalVolume,
    kinds.ResizePhysicalVolume,
    kinds.CreateVolumeGroup,
    kinds.ExtendVolumeGroup,
    kinds.RewriteGroup,
    kinds.CreateLogicalVolume,
    kinds.ExtendLogicalVolume,
    kinds.ShrinkLogicalVolume,
    kinds.RemoveLogicalVolume,
    kinds.MarkCleared,
    kinds.FinishLogicalVolumes,
)
_THIN_KINDS = (kinds.CreateThinPool, kinds.ExtendPoolMetadata, kinds.CreateThinVolume)
_CACHE_KINDS = (kinds.CreateCacheVolume, kinds.AttachCache, kinds.ChangeCacheMode)
_LUKS_KINDS = (kinds.FormatLuks, kinds.OpenLuks, kinds.ResizeLuks, kinds.CloseMapping)
_MD_KINDS = (
    kinds.CreateArray,
    kinds.AddMembers,
    kinds.ReAddMembers,
    kinds.WidenArray,
    kinds.GrowArray,
    kinds.StartArray,
    kinds.StopArray,
)
_ZFS_KINDS = (kinds.CreateZpool, kinds.ExtendZpool, kinds.ShrinkZpool, kinds.CreateDataset, kinds.SetProperties, kinds.ExportZpool)

_OF_KIND: Mapping[type[Step], tuple[str, ...]] = {
    kinds.FinishPartitions: ("sfdisk",),
    kinds.ClearGaps: ("sfdisk", "wipefs"),
    kinds.ClearSignatures: ("wipefs",),
    **dict.fromkeys(_LVM_KINDS, ("pvcreate",)),
    **dict.fromkeys(_THIN_KINDS, ("pvcreate", "thin_check")),
    **dict.fromkeys(_CACHE_KINDS, ("pvcreate", "cache_check")),
    **dict.fromkeys(_LUKS_KINDS, ("cryptsetup",)),
    **dict.fromkeys(_MD_KINDS, ("mdadm",)),
    **dict.fromkeys(_ZFS_KINDS, ("zpool",)),
    **dict.fromkeys((kinds.CreateSubvolumes, kinds.LimitSubvolumes), ("btrfs", "mount", "unshare")),
}

_MAPPER_KINDS = (kinds.ActivateGroup, kinds.CreateLogicalVolume, kinds.CreateThinPool, kinds.OpenLuks)


class Ability(t.NamedTuple):
    """Something that a kernel can do or not: the module that has it, the file that lists it once it is there, and what takes it."""

    module: str
    listed_in: str
    listed_as: str
    needed_for: str


_MAPPER = Ability("dm_mod", "/proc/misc", "device-mapper", "logical volumes and LUKS containers (device-mapper)")
_MD = Ability("md_mod", "/proc/devices", " md", "md arrays")
_ZFS = Ability("zfs", "/proc/misc", "zfs", "ZFS")
_THIN = Ability("dm_thin_pool", "/sys/module/dm_thin_pool/initstate", "live", "thin pools (dm-thin)")
_CACHE = Ability("dm_cache", "/sys/module/dm_cache/initstate", "live", "caches of volumes (dm-cache)")


def missing(machine: Machine, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return what the steps need and the host has not, a sentence each."""
    steps = tuple(steps)
    tools = sorted({tool for step in steps for tool in tools_of(step)})
    return (
        *missing_tools(machine, tools),
        *(
            f"this kernel does not support {ability.needed_for}; a container gets them from the machine that it runs on"
            for ability in abilities_of(steps)
            if not _is_there(machine, ability) and not _can_come(machine, ability)
        ),
        *_why_no_zfs(machine, steps),
    )


def _why_no_zfs(machine: Machine, steps: Iterable[Step]) -> Iterator[str]:
    """Give what is wrong where ZFS does not answer: it may be a module of the kernel, or a program of its own (zfs-fuse)."""
    needed = any(isinstance(step, _ZFS_KINDS) for step in steps) and machine.has("zpool")
    if needed and not _zfs_answers(machine) and not _can_come(machine, _ZFS):
        yield "ZFS does not run on this host, and there is no module zfs for this kernel; zpool list says more"


def _zfs_answers(host: Host) -> bool:
    outcome = host.run(LIST_POOLS)
    return outcome is not None and outcome.code == 0


def missing_tools(machine: Machine, tools: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each of these tools that the host has not."""
    return tuple(_missing_tool(tool) for tool in tools if not machine.has(tool))


def load_abilities(host: Host, steps: Iterable[Step]) -> None:
    """Have the kernel load what the steps need of it and is not there yet: not every tool does that by itself."""
    steps = tuple(steps)
    for ability in abilities_of(steps):
        if not _is_there(host, ability):
            host.run(["modprobe", ability.module])
    if any(isinstance(step, _ZFS_KINDS) for step in steps) and not _zfs_answers(host):
        host.run(["modprobe", _ZFS.module])


def tools_of(step: Step) -> tuple[str, ...]:
    """Return the tools that a step needs; of the tools of LVM pvcreate stands for all."""
    if isinstance(step, kinds.WritePartitionTable):
        mapped = step.disk.startswith("/dev/mapper/")
        return ("sfdisk", "wipefs", *(("kpartx", "dmsetup") if mapped else ("partx",)))
    if isinstance(step, kinds.MakeFilesystem):
        return (FILESYSTEMS[step.type].make[0], "blkid")
    if isinstance(step, kinds.MakeSwap):
        return (FILESYSTEMS[SWAP].make[0], "blkid")
    if isinstance(step, kinds.GrowFilesystem):
        return _tools_to_grow(step)
    if isinstance(step, kinds.RestoreSuperblock):
        growth = FILESYSTEMS[step.type].growth
        return ("dd", *(growth.check[:1] if growth else ()))
    if isinstance(step, kinds.ShrinkLogicalVolume):
        return ("pvcreate", *_tools_to_shrink(step))
    return _OF_KIND[type(step)]


def _tools_to_grow(step: kinds.GrowFilesystem) -> tuple[str, ...]:
    growth = FILESYSTEMS[step.type].growth
    if growth is None:
        return ()
    apart = ("unshare", "mount") if growth.mounted and not step.mountpoint else ()
    commands = (growth.mounted or growth.unmounted, () if step.mountpoint else growth.check)
    return tuple(command[0] for command in commands if command) + apart


def _tools_to_shrink(step: kinds.ShrinkLogicalVolume) -> tuple[str, ...]:
    row = FILESYSTEMS[step.type]
    commands = (row.shrink, *((row.growth.check, row.growth.measure.command) if row.growth else ()))
    return tuple(command[0] for command in commands if command)


def abilities_of(steps: Iterable[Step]) -> tuple[Ability, ...]:
    """Return what the kernel has to be able to do for the steps."""
    steps = tuple(steps)
    needed = ((_MAPPER, _MAPPER_KINDS), (_MD, (kinds.CreateArray, kinds.StartArray)), (_THIN, _THIN_KINDS), (_CACHE, _CACHE_KINDS))
    return tuple(ability for ability, its_kinds in needed if any(isinstance(step, its_kinds) for step in steps))


def _missing_tool(tool: str) -> str:
    debian, red_hat = _PACKAGES[tool]
    name = "lvm2" if tool == "pvcreate" else tool
    package = f"package {debian}" if debian == red_hat else f"package {debian} on Debian, {red_hat} on Red Hat"
    return f"there is no {name} on this host: install the {package}"


def _is_there(host: Host, ability: Ability) -> bool:
    return any(line.endswith(ability.listed_as) for line in (host.read(ability.listed_in) or "").splitlines())


def _can_come(host: Host, ability: Ability) -> bool:
    outcome = host.run(["modprobe", "--dry-run", ability.module])
    return outcome is not None and outcome.code == 0
