# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of a host's tables for a layout that was made by hand -> the same in its schema, so that nothing is left to write.

What no table mentions is opened, assembled and mounted otherwise, by hand or by a unit, and is not written into a table either.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._facts.host import Host
from .._facts.tree import Tree
from .._storage.boot_tables import CRYPTTAB, FSTAB, MDADM_CONFS
from .._storage.crypttab import NO_KEYS, Container, read_containers, why_no_key_file, why_no_options
from .._storage.filesystems import NOT_MOUNTED, SWAP
from .._storage.fstab import Entry, plain_source, read_entries
from .._storage.mdadm_conf import mdadm_uuid, read_arrays
from .._storage.options.mounts import mistakes_in
from .._storage.options.words import NOTHING, TAKE_AWAY, words_of
from .table_names import table_names

Plain = dict[str, t.Any]

_NOFAIL = "nofail"


@dataclass(frozen=True)
class BootLines:
    """The lines of fstab and crypttab, and the UUIDs of the arrays in mdadm.conf, as mdadm writes them."""

    mounts: tuple[Entry, ...] = ()
    containers: tuple[Container, ...] = ()
    arrays: frozenset[str] = frozenset()


def read_boot_lines(host: Host) -> BootLines:
    """Return the lines of the running system."""
    arrays = (array for path in MDADM_CONFS for array in read_arrays(host.read(path) or ""))
    return BootLines(
        tuple(read_entries(host.read(FSTAB) or "")),
        tuple(read_containers(host.read(CRYPTTAB) or "")),
        frozenset(array.uuid for array in arrays),
    )


def with_boot_lines(
    schema: Mapping[str, Sequence[Plain]], tree: Tree, called: Mapping[str, str], lines: BootLines
) -> dict[str, list[Plain]]:
    """Return the schema with what the lines say; `called` are the names of devices in it, by those of the kernel."""
    devices = {name: device for device, name in called.items()}
    names = table_names(tree)
    of = {name: names.get(device, ()) for name, device in devices.items()}
    found = {kind: [dict(entry) for entry in entries] for kind, entries in schema.items()}
    for entry in found.get("fss", ()):
        entry.update(_of_mount(entry, of[entry["device"]], tree.devices[devices[entry["device"]]].mountpoints, lines.mounts))
    nofail = any(_NOFAIL in words_of(entry.get("fstab_options", "")) for entry in found.get("fss", ()))
    for entry in found.get("luks", ()):
        entry.update(_of_container(entry, of[entry["device"]], lines.containers, nofail))
    for entry in found.get("mds", ()):
        uuid = tree.devices[devices[entry["name"]]].uuid
        entry.update({} if uuid and mdadm_uuid(uuid) in lines.arrays else {"mdadm_conf_enabled": False})
    return found


def not_carried(
    schema: Mapping[str, Sequence[Plain]], tree: Tree, called: Mapping[str, str], lines: BootLines
) -> Iterator[tuple[str, str]]:
    """Give each option of a line that a schema may not have, with its mount point or container: it stays in the table."""
    devices = {name: device for device, name in called.items()}
    names = table_names(tree)
    for entry in schema.get("fss", ()):
        line = _line(names.get(devices[entry["device"]], ()), (entry["mount"],), lines.mounts)
        for word in words_of(line.opts) if line is not None else ():
            if list(mistakes_in(entry["fs_type"], word)):
                yield f"{word} of {entry['mount']} in fstab", "the schema has no such option"


def _of_mount(entry: Plain, names: Sequence[str], places: Sequence[str], mounts: Sequence[Entry]) -> Plain:
    """Return what the line of a mounted file system, or of swap, adds to it."""
    if entry["mount"] == NOT_MOUNTED:
        return {}
    line = _line(names, (entry["mount"], *places), mounts)
    if line is None:
        return {"fstab_enabled": False}
    options = [word for word in words_of(line.opts) if not list(mistakes_in(entry["fs_type"], word))]
    mount = {} if line.is_swap else {"mount": line.path.rstrip("/") or "/"}
    return {**mount, **({"fstab_options": ",".join(options)} if options and options != [NOTHING] else {})}


def _line(names: Sequence[str], places: Sequence[str], mounts: Sequence[Entry]) -> t.Optional[Entry]:
    """Return the line of a device at the first of these places that has one."""
    own = [line for line in mounts if plain_source(line.src) in names]
    at = {SWAP if line.is_swap else line.path.rstrip("/") or "/": line for line in reversed(own)}
    return next((at[place] for place in places if place in at), None)


def _of_container(entry: Plain, names: Sequence[str], containers: Sequence[Container], nofail: bool) -> Plain:
    """Return what the line of a container adds to it. Where a mount has `nofail`, and this line has not, that stays so, too."""
    line = next((line for line in containers if line.name == entry["name"] and plain_source(line.source) in names), None)
    if line is None:
        return {"crypttab_enabled": False}
    key = {"key_file": line.key_file} if line.key_file not in NO_KEYS and why_no_key_file(line.key_file) is None else {}
    words = words_of(line.options)
    waited_for = [f"{TAKE_AWAY}{_NOFAIL}"] if nofail and _NOFAIL not in words else []
    options = ",".join([*(word for word in words if why_no_options(word) is None), *waited_for])
    return {**key, **({"crypttab_options": options} if options else {})}
