# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ways in which a disk can be erased, as the disk itself reports them to nvme-cli, hdparm and sg3-utils. Nothing is changed.

The levels are those of NIST SP 800-88: *purge* also reaches what no address leads to (spare blocks, remapped sectors), *clear* all that can
be read.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from .._facts.host import Host
from .._facts.select import Disk

METHODS = ("auto", "sanitize", "crypto", "discard", "zero")
AUTO, SANITIZE, CRYPTO, DISCARD, ZERO = METHODS
PURGE, CLEAR = "purge", "clear"

_HOURS = 24
_NVME_SUFFIX = re.compile(r"\]:\s*(0x[0-9a-f]+|[0-9]+)")
_NVME_STATUS = re.compile(r"\(SSTAT\)\s*:\s*(0x[0-9a-fA-F]+|[0-9]+)")
_ATA_FEATURE = re.compile(r"^\s*\*\s+(.+?)\s*$", re.MULTILINE)
_ATA_FROZEN = "SD1"
"""What a disk reports whose firmware or kernel has locked sanitize operations until it is powered off."""
_BLOCK_ERASE, _OVERWRITE, _CRYPTO_SCRAMBLE = "BLOCK_ERASE_EXT command", "OVERWRITE_EXT command", "CRYPTO_SCRAMBLE_EXT command"


class State(Enum):
    """What a disk reports of its last sanitize operation."""

    NONE = "none"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Way:
    """A way to erase a disk: by a `command` that the disk carries out itself, or (none) by writing all of its bytes.

    `status` reads how far the disk is that goes on by itself, also after a power cut; without it the command returns when all is done.
    `whole_drive`: what else is on the same drive is erased as well.
    """

    method: str
    level: str
    name: str
    command: tuple[str, ...] = ()
    status: t.Optional[Callable[[Host], State]] = None
    whole_drive: bool = False


def ways_of(host: Host, disk: Disk) -> tuple[Way, ...]:
    """Return the ways to erase a disk, the best first. A disk with several paths, or behind a controller, is only written to."""
    node = str(disk.device.dev)
    found: list[Way] = []
    if not disk.multipath:
        found += _READERS.get(str(disk.transport), _of_none)(host, node)
    most = host.read(f"/sys/class/block/{disk.device.name}/queue/discard_max_bytes") or "0"
    if most.isdigit() and int(most) > 0:
        found.append(Way(DISCARD, CLEAR, "discard of all blocks"))
    return (*found, Way(ZERO, CLEAR, "zeros on all blocks"))


def choose(ways: Sequence[Way], method: str) -> t.Optional[Way]:
    """Return the way that a method means; `auto` is the best one that is sure to leave nothing to read, so never a discard."""
    return next((way for way in ways if way.method == method or (method == AUTO and way.method != DISCARD)), None)


def _of_none(_host: Host, _node: str) -> Iterator[Way]:
    return iter(())


def _said(host: Host, command: Sequence[str]) -> str:
    outcome = host.run(command)
    return outcome.stdout if outcome is not None and outcome.code == 0 else ""


def _of_nvme(host: Host, node: str) -> Iterator[Way]:
    """Give what an NVMe controller offers: a sanitize erases all of its namespaces, a format may erase one alone."""
    identity = _numbers(_said(host, ["nvme", "id-ctrl", "--output-format=json", node]))
    sanitizes, formats = identity.get("sanicap", 0), identity.get("fna", 0)

    def sanitize(method: str, action: int, name: str) -> Way:
        command = ("nvme", "sanitize", f"--sanact={action}", node)
        return Way(method, PURGE, f"NVMe sanitize, {name}", command, lambda host: _nvme_status(host, node), whole_drive=True)

    def reformat(method: str, setting: int, name: str) -> Way:
        command = ("nvme", "format", f"--ses={setting}", *layout, "--force", f"--timeout={_HOURS * 3600 * 1000}", node)
        return Way(method, PURGE, f"NVMe format, {name}", command, whole_drive=bool(formats & 0b11))

    if sanitizes & 0b010:
        yield sanitize(SANITIZE, 2, "block erase")
    if sanitizes & 0b001:
        yield sanitize(CRYPTO, 4, "crypto erase")
    layout = _nvme_layout(_numbers(_said(host, ["nvme", "id-ns", "--output-format=json", node])))
    if identity.get("oacs", 0) & 0b10 and layout:
        if formats & 0b100:
            yield reformat(CRYPTO, 2, "crypto erase")
        yield reformat(SANITIZE, 1, "user data erase")


def _nvme_layout(namespace: t.Mapping[str, int]) -> tuple[str, ...]:
    """Return the words by which a format leaves blocks and metadata as they are; none where they are not known."""
    if "flbas" not in namespace or "dps" not in namespace:
        return ()
    flbas, protection = namespace["flbas"], namespace["dps"]
    block = (flbas & 0b1111) | (flbas >> 5 & 0b11) << 4
    return (f"--lbaf={block}", f"--ms={flbas >> 4 & 1}", f"--pi={protection & 0b111}", f"--pil={protection >> 3 & 1}")


def _nvme_status(host: Host, node: str) -> State:
    status = _NVME_STATUS.search(_said(host, ["nvme", "sanitize-log", node]))
    states = {1: State.DONE, 2: State.ACTIVE, 3: State.FAILED, 4: State.DONE}
    return states.get(int(status[1], 0) & 0b111, State.NONE) if status is not None else State.NONE


def other_namespaces(host: Host, node: str) -> int:
    """Return how many other namespaces the drive of an NVMe namespace has, also those that no controller shows; 0 if it reports none."""
    text = _said(host, ["nvme", "list-ns", "--all", node])
    return max(0, len(set(_NVME_SUFFIX.findall(text))) - 1)


def _numbers(text: str) -> dict[str, int]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, int)} if isinstance(data, dict) else {}


def _of_ata(host: Host, node: str) -> Iterator[Way]:
    """Give what the sanitize feature set of an ATA disk has. Its older security erase is left out: cut off, it leaves the disk locked."""
    features = set(_ATA_FEATURE.findall(_said(host, ["hdparm", "-I", node])))
    if "SANITIZE feature set" not in features or _ATA_FROZEN in _said(host, ["hdparm", "--sanitize-status", node]):
        return

    def way(method: str, name: str, *words: str) -> Way:
        command = ("hdparm", "--yes-i-know-what-i-am-doing", *words, node)
        return Way(method, PURGE, f"ATA sanitize, {name}", command, lambda host: _ata_status(host, node))

    if _BLOCK_ERASE in features:
        yield way(SANITIZE, "block erase", "--sanitize-block-erase")
    if _CRYPTO_SCRAMBLE in features:
        yield way(CRYPTO, "crypto scramble", "--sanitize-crypto-scramble")
    if _OVERWRITE in features:
        yield way(SANITIZE, "overwrite", "--sanitize-overwrite-passes", "1", "--sanitize-overwrite", "hex:00000000")


def _ata_status(host: Host, node: str) -> State:
    said = _said(host, ["hdparm", "--sanitize-status", node])
    if "SD2" in said:
        return State.ACTIVE
    if "SD3" in said or "completed unsuccessfully" in said:
        return State.FAILED
    return State.DONE if "Completed Without Error" in said else State.NONE


def _of_scsi(host: Host, node: str) -> Iterator[Way]:
    """Give which sanitize operations a SCSI disk supports, by their numbers in the standard; sg_sanitize waits for the end."""
    offers = (
        (2, SANITIZE, "block erase", ("--block",)),
        (3, CRYPTO, "crypto erase", ("--crypto",)),
        (1, SANITIZE, "overwrite", ("--overwrite", "--zero")),
    )
    for number, method, name, words in offers:
        said = _said(host, ["sg_opcodes", f"--opcode=0x48,{number}", node])
        if "supported [" in said:
            yield Way(method, PURGE, f"SCSI sanitize, {name}", ("sg_sanitize", *words, "--quick", node))


_READERS: dict[str, Callable[[Host, str], Iterator[Way]]] = {
    "nvme": _of_nvme,
    **dict.fromkeys(("sata", "ata"), _of_ata),
    **dict.fromkeys(("sas", "scsi", "fc", "iscsi"), _of_scsi),
}
"""How disks are asked, by their transport."""
