# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""sysfs and procfs: what the kernel says of block devices, memory and firmware without any tool.

Gives the same rows as lsblk, with four columns more: `devpath` (the place in the kernel's device tree), `dm-name`, `dm-uuid` and
`suspended` (reading a suspended device would hang).
It fills what an old lsblk does not know, and stands in for it where there is none.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

from .host import Host
from .lsblk import Row, Rows, to_flag, to_integer
from .signatures import SECTOR

BLOCK = "/sys/class/block"

_DM_TYPES = (("LVM-", "lvm"), ("CRYPT-", "crypt"), ("mpath-", "mpath"))
_DM_PARTITION = re.compile(r"^part(?P<number>[0-9]+)-")
_VPD_HEADER = 3
"""Characters of a vital product data page before the serial number, the leading zero byte being stripped already."""


def read_rows(host: Host) -> Rows:
    """Return every block device that the kernel shows; the single paths of an NVMe with several are hidden."""
    rows = {}
    for name in host.names(BLOCK):
        if host.read(f"{BLOCK}/{name}/hidden") == "1":
            continue
        row = _read_row(host, name)
        rows[row["kname"]] = row
    return rows


def read_memory(host: Host) -> t.Optional[int]:
    """Return MiB of memory that the kernel manages, rounded down; None when /proc/meminfo cannot be read."""
    return parse_memory(host.read("/proc/meminfo") or "")


def parse_memory(meminfo: str) -> t.Optional[int]:
    """Return MemTotal of /proc/meminfo in MiB, rounded down; None when it is not there."""
    match = re.search(r"^MemTotal:\s*([0-9]+) kB", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else None


def read_firmware(host: Host) -> str:
    """Return `uefi` when the kernel was started by UEFI, else `bios`."""
    return "uefi" if host.names("/sys/firmware/efi") else "bios"


def _read_row(host: Host, name: str) -> Row:
    base = f"{BLOCK}/{name}"
    place = host.resolve(base)
    partition = to_integer(host.read(f"{base}/partition"))
    whole = base if partition is None or place is None else posixpath.dirname(place)
    dm_name, dm_uuid = host.read(f"{base}/dm/name"), host.read(f"{base}/dm/uuid")
    row: Row = {
        "kname": name.replace("!", "/"),
        "path": f"/dev/mapper/{dm_name}" if dm_name else "/dev/" + name.replace("!", "/"),
        "maj:min": host.read(f"{base}/dev"),
        "devpath": place.removeprefix("/sys") if place else None,
        "type": _type(name, partition, dm_uuid, dm_name, host.read(f"{base}/md/level")),
        "size": _bytes(host.read(f"{base}/size")),
        "ro": to_flag(host.read(f"{base}/ro")),
        "dm-name": dm_name,
        "dm-uuid": dm_uuid,
        "suspended": to_flag(host.read(f"{base}/dm/suspended")),
        "mountpoints": (),
    }
    row.update(_queue(host, whole))
    if partition is None:
        row.update(_identity(host, base, name))
        row["partn"] = _dm_partition(dm_uuid)
        row["parents"] = (*(parent.replace("!", "/") for parent in host.names(f"{base}/slaves")), *_backing_device(host, base))
    else:
        row["partn"] = partition
        row["start"] = to_integer(host.read(f"{base}/start"))
        row["parents"] = (posixpath.basename(whole).replace("!", "/"),)
    return row


def _backing_device(host: Host, base: str) -> tuple[str, ...]:
    """Return the block device that a loop device shows a part of: a file system at an offset is mounted so. A file below /dev is none."""
    file = host.read(f"{base}/loop/backing_file") or ""
    name = (host.resolve(file) or file).removeprefix("/dev/") if file.startswith("/dev/") else ""
    return (name,) if name and host.read(f"{BLOCK}/{name.replace('/', '!')}/size") is not None else ()


def _queue(host: Host, whole: str) -> Row:
    return {
        "rm": to_flag(host.read(f"{whole}/removable")),
        "rota": to_flag(host.read(f"{whole}/queue/rotational")),
        "log-sec": to_integer(host.read(f"{whole}/queue/logical_block_size")),
        "phy-sec": to_integer(host.read(f"{whole}/queue/physical_block_size")),
        "opt-io": to_integer(host.read(f"{whole}/queue/optimal_io_size")),
        "zoned": host.read(f"{whole}/queue/zoned"),
    }


def _identity(host: Host, base: str, name: str) -> Row:
    read = host.read
    revisions = (read(f"{base}/device/{leaf}") for leaf in ("rev", "firmware_rev", "fwrev"))
    return {
        "vendor": read(f"{base}/device/vendor") or None,
        "model": read(f"{base}/device/model") or read(f"{base}/device/name") or None,
        "rev": next((text for text in revisions if text), None),
        "serial": _serial(host, base),
        "subsystem-nqn": read(f"{base}/device/subsysnqn") or None,
        "namespace": read(f"{base}/nsid") or None,
        "wwn": parse_wwid(read(f"{base}/wwid") or read(f"{base}/device/wwid") or "", nvme=name.startswith("nvme")),
    }


def _serial(host: Host, base: str) -> t.Optional[str]:
    page = host.read(f"{base}/device/vpd_pg80")
    if page and len(page) > _VPD_HEADER:
        return page[_VPD_HEADER:].strip() or None
    return host.read(f"{base}/serial") or host.read(f"{base}/device/serial") or None


def parse_wwid(wwid: str, nvme: bool) -> t.Optional[str]:
    """Return sysfs' wwid as lsblk writes a WWN: `naa.5000...` of SCSI as `0x5000...`, NVMe's as it is; None for what is no WWN."""
    if nvme:
        return wwid or None
    match = re.fullmatch(r"(?:naa|eui)\.([0-9A-Fa-f]+)", wwid)
    return f"0x{match[1].lower()}" if match else None


def _type(name: str, partition: t.Optional[int], dm_uuid: t.Optional[str], dm_name: t.Optional[str], md_level: t.Optional[str]) -> str:
    if partition is not None or _dm_partition(dm_uuid) is not None:
        return "part"
    if dm_uuid or dm_name:
        return next((kind for prefix, kind in _DM_TYPES if (dm_uuid or "").startswith(prefix)), "dm")
    if md_level is not None:
        return md_level or "md"
    if re.match(r"^loop[0-9]", name):
        return "loop"
    return "rom" if re.match(r"^sr[0-9]", name) else "disk"


def _dm_partition(dm_uuid: t.Optional[str]) -> t.Optional[int]:
    match = _DM_PARTITION.match(dm_uuid or "")
    return int(match["number"]) if match else None


def _bytes(sectors: t.Optional[str]) -> t.Optional[int]:
    count = to_integer(sectors)
    return None if count is None else count * SECTOR
