# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""udev: the properties it keeps of block devices, as rows, and the links it made for them."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping

from .host import Host
from .lsblk import Row, Rows, to_integer

COMMAND = ("udevadm", "info", "--export-db")

BLOCK = "/sys/class/block"

LINK_DIRECTORIES = ("/dev/disk/by-id", "/dev/disk/by-path")

_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")


def parse_rows(text: str) -> Rows:
    """Return the block devices of `udevadm info` (one device or the whole database) as rows, with the extra column `id-path`."""
    rows = {}
    for block in re.split(r"\n\s*\n", text):
        properties = dict(line[3:].split("=", 1) for line in block.splitlines() if line.startswith("E: ") and "=" in line)
        if properties.get("SUBSYSTEM") == "block" and "DEVNAME" in properties:
            row = _row(properties)
            rows[row["kname"]] = row
    return rows


def some_command(names: Iterable[str]) -> list[str]:
    """Return the command that prints the properties of block devices, by kernel name, without the rest of the large database."""
    return ["udevadm", "info", *(f"{BLOCK}/{name.replace('/', '!')}" for name in names)]


def read_links(host: Host) -> dict[str, tuple[str, ...]]:
    """Return by kernel name every by-id and by-path link that leads to a device, sorted."""
    links: dict[str, list[str]] = {}
    for directory in LINK_DIRECTORIES:
        for name in host.names(directory):
            target = host.resolve(f"{directory}/{name}")
            if target is not None:
                links.setdefault(target.removeprefix("/dev/"), []).append(f"{directory}/{name}")
    return {name: tuple(sorted(found)) for name, found in links.items()}


def decode(text: str) -> str:
    r"""Return text with udev's and libblkid's `\x20` escapes resolved: these are bytes of UTF-8, or of Latin-1 where they cannot be."""
    return _ESCAPED.sub(lambda match: _text(bytes.fromhex(match[0].replace("\\x", ""))), text)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _row(properties: Mapping[str, str]) -> Row:
    def value(*names: str) -> t.Optional[str]:
        found = (decode(properties[name]).strip() for name in names if name in properties)
        return next((text for text in found if text), None)

    return {
        "kname": properties["DEVNAME"].removeprefix("/dev/"),
        "id-path": value("ID_PATH"),
        "vendor": value("ID_VENDOR_ENC", "ID_VENDOR"),
        "model": value("ID_MODEL_ENC", "ID_MODEL"),
        "rev": value("ID_REVISION"),
        "serial": value("SCSI_IDENT_SERIAL", "ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"),
        "wwn": value("ID_WWN_WITH_EXTENSION", "ID_WWN"),
        "tran": _transport(properties),
        "pttype": value("ID_PART_TABLE_TYPE"),
        "ptuuid": value("ID_PART_TABLE_UUID"),
        "partn": to_integer(value("ID_PART_ENTRY_NUMBER")),
        "partlabel": value("ID_PART_ENTRY_NAME"),
        "partuuid": value("ID_PART_ENTRY_UUID"),
        "parttype": value("ID_PART_ENTRY_TYPE"),
        "fstype": value("ID_FS_TYPE"),
        "uuid": value("ID_FS_UUID_ENC", "ID_FS_UUID"),
        "label": value("ID_FS_LABEL_ENC", "ID_FS_LABEL"),
    }


def _transport(properties: Mapping[str, str]) -> t.Optional[str]:
    """Return a transport where udev's bus names one: its `scsi` may be anything, its `ata` may be a SATA disk."""
    return {"usb": "usb", "ieee1394": "sbp"}.get(properties.get("ID_BUS", ""))
