# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout that was carried out -> what the host has to know of it: mounts, swap, crypttab and mdadm.conf, and what of that is missing.

Everything is found again by UUID, never by a name that may change at the next boot.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils.storage.boot_loader import ESP_PLACES
from ....module_utils.storage.btrfs import mount_options
from ....module_utils.storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP
from ....module_utils.storage.fstab import with_escapes, without_escapes
from ....module_utils.storage.lvm import mapper_node
from ....module_utils.storage.unlock import TANG, TPM2, crypttab_key, crypttab_options

Plain = dict[str, t.Any]
Layout = Mapping[str, t.Any]
Entry = Mapping[str, t.Any]

FSTAB = "/etc/fstab"
CRYPTTAB = "/etc/crypttab"
MDADM_CONFS = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")
"""Where Debian and those like it have it, and all others."""
MOUNTINFO = "/proc/self/mountinfo"
SWAP_TARGET = "[SWAP]"
ALL = "all"
"""In `nofail`, all but the root."""

_SECTION = "### "
_DEFAULTS = "defaults"
_NO_KEY = "none"
_OF_INITRAMFS = ("/", "/usr")
_TOOLS_OF_METHODS = {TANG: ("clevis", "clevis-luks-unlock", "clevis-luks-askpass"), TPM2: ("systemd-cryptenroll", "tpm2")}
"""The last of each stands for what opens it at a start: Clevis' answer to systemd's question, and the libraries of TPMs."""


@dataclass(frozen=True)
class Settings:
    """How a layout is used.

    `root` is where mount points lie on the running host. With `new_system` the tables are those of a system that lies there, which
    knows nothing of `root`. `nofail` names mount points and spaces, or has `all` for all but the root. `key_files` are paths by container
    or space, `key_file` is that of all others.
    """

    root: str = "/"
    new_system: bool = False
    nofail: tuple[str, ...] = ()
    key_files: Mapping[str, str] = field(default_factory=dict)
    key_file: str = _NO_KEY
    crypttab_options: str = "luks"
    after_network: frozenset[str] = frozenset()
    """Devices that are there when there is a network; these follow from the layout."""


def host_files(layout: Layout, settings: Settings, present: str = "") -> Plain:
    """Return `{mounts, swaps, containers, arrays}`, each with `configured` (and `active`) for what is so already.

    `layout` is what disk_layout returned: `schema`, and with their UUIDs `filesystems`, `containers` and `arrays`. `present` is the text
    of the host's tables, each below a line `### PATH`. Raises KeyError with the name of what has no UUID.
    """
    texts = sections(present)
    settings = replace(
        settings,
        nofail=(*settings.nofail, *_stood_in_for(layout["schema"])),
        after_network=frozenset(_after_network(layout["schema"])),
    )
    used = [(entry, _known(layout, "filesystems", entry["device"])) for entry in used_file_systems(layout["schema"])]
    mounted = sorted((pair for pair in used if pair[0]["mount"] != SWAP), key=lambda pair: _depth(pair[0]["mount"]))
    return {
        "mounts": [_mount(entry, known, settings, texts) for entry, known in mounted],
        "swaps": [_swap(entry, known, settings, texts) for entry, known in used if entry["mount"] == SWAP],
        "containers": [
            _container(entry, _known(layout, "containers", entry["name"]), _used_on(layout["schema"], entry["name"]), settings, texts)
            for entry in _all(layout, "luks")
        ],
        "arrays": [_array(entry, _known(layout, "arrays", entry["name"]), texts) for entry in _all(layout, "mds")],
    }


def _stood_in_for(schema: Mapping[str, t.Any]) -> Iterable[str]:
    """Give where an ESP is mounted that has its like on other disks: a start from one of those must not wait for a disk that is gone."""
    fats = [entry for entry in schema.get("fss") or () if entry["fs_type"] == "vfat" and entry.get("space_id")]
    copies = {entry["space_id"] for entry in fats if entry.get("mount", NOT_MOUNTED) == NOT_MOUNTED}
    return [entry["mount"] for entry in fats if entry["space_id"] in copies and entry.get("mount") in ESP_PLACES]


def sections(text: str) -> dict[str, str]:
    """Return the texts of files by path, from a text in which `### PATH` stands before each."""
    found: dict[str, list[str]] = {}
    path = ""
    for line in text.splitlines():
        if line.startswith(_SECTION):
            path = line[len(_SECTION) :].strip()
        else:
            found.setdefault(path, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def conflicting_mounts(schema: Mapping[str, t.Any], hardware: Mapping[str, t.Any], root: str, present: str) -> list[str]:
    """Return the mount points of a schema where something else is mounted: what lies on none of the schema's disks."""
    own = {str(table.get("disk_id")) for table in schema.get("parteds") or ()}
    ours = {place for disk in hardware.get("disks") or () if disk.get("id") in own for place in _mountpoints(disk)}
    taken = {without_escapes(fields[4]) for line in sections(present).get(MOUNTINFO, "").splitlines() if len(fields := line.split()) > 4}
    wanted = [below(root, entry["mount"]) for entry in used_file_systems(schema) if entry["mount"] != SWAP]
    return [place for place in wanted if place in taken and place not in ours]


def below(root: str, path: str) -> str:
    """Return a path of a system whose root lies at `root`."""
    return f"{root.rstrip('/')}{path.rstrip('/')}" or "/"


def used_file_systems(schema: Mapping[str, t.Any]) -> list[Entry]:
    """Return the file systems and subvolumes that are mounted, and swap; a subvolume as its file system with a mount of its own."""
    entries = [entry for entry in schema.get("fss") or () if entry.get("fstab_enabled", True)]
    return [mount for entry in entries for mount in (entry, *_subvolumes(entry)) if mount.get("mount", NOT_MOUNTED) != NOT_MOUNTED]


def _subvolumes(entry: Entry) -> Iterable[Entry]:
    for subvolume in entry.get("subvolumes") or ():
        options = mount_options(str(entry.get("fstab_options") or ""), str(subvolume.get("fstab_options") or ""), subvolume["name"])
        yield {**entry, "mount": subvolume.get("mount", NOT_MOUNTED), "fstab_options": options}


def _all(layout: Layout, kind: str) -> Iterable[Entry]:
    return layout["schema"].get(kind) or ()


def _used_on(schema: Mapping[str, t.Any], container: str) -> list[Entry]:
    """Return the file systems and swap on a container: straight on it, or on volumes of a group that it is a part of."""
    devices = {f"/dev/mapper/{container}"}
    groups = {group["name"] for group in schema.get("vgs") or () if devices & set(group.get("pvnames") or ())}
    for volume in schema.get("lvs") or ():
        if volume["vgname"] in groups:
            node = mapper_node(volume["vgname"], volume["name"])
            devices |= {node, f"/dev/{volume['vgname']}/{volume['name']}", str(volume.get("device") or node)}
    devices |= {f"/dev/mapper/{other['name']}" for other in schema.get("luks") or () if other["device"] in devices}
    return [entry for entry in used_file_systems(schema) if entry["device"] in devices]


def _known(layout: Layout, kind: str, name: str) -> Entry:
    """Return what is known of the thing of that name, which is that of its device, or of the container."""
    for entry in layout.get(kind) or ():
        if name in (entry.get("device"), entry.get("name")):
            return t.cast("Entry", entry)
    raise KeyError(name)


def _depth(mount: str) -> tuple[int, str]:
    return (len([part for part in mount.split("/") if part]), mount)


def _mountpoints(disk: Mapping[str, t.Any]) -> Iterable[str]:
    for part in (*(disk.get("partitions") or ()), *(disk.get("holders") or ())):
        yield from part.get("mountpoints") or ()


def _mount(entry: Entry, known: Entry, settings: Settings, texts: Mapping[str, str]) -> Plain:
    target = below(settings.root, entry["mount"])
    path = entry["mount"] if settings.new_system else target
    line = {
        "src": f"UUID={known['uuid']}",
        "path": path,
        "fstype": entry["fs_type"],
        "opts": _options(entry, settings),
        "dump": "0",
        "passno": _pass(entry),
    }
    active = target in (known.get("mountpoints") or ())
    return {**line, "target": target, "configured": _in_fstab(line, texts), "active": active}


def _swap(entry: Entry, known: Entry, settings: Settings, texts: Mapping[str, str]) -> Plain:
    line = {
        "src": f"UUID={known['uuid']}",
        "path": NOT_MOUNTED,
        "fstype": SWAP,
        "opts": _options(entry, settings),
        "dump": "0",
        "passno": "0",
    }
    active = SWAP_TARGET in (known.get("mountpoints") or ())
    return {**line, "device": entry["device"], "configured": _in_fstab(line, texts), "active": active}


def _options(entry: Entry, settings: Settings) -> str:
    asked_for = str(entry.get("fstab_options") or _DEFAULTS)
    # FAT has no modes: what starts the system, and the seed of its chance numbers, would be there for everybody to read.
    private = asked_for == _DEFAULTS and entry["fs_type"] == "vfat" and entry["mount"] in ESP_PLACES
    options = _with_nofail("umask=0077" if private else asked_for, _may_fail(entry, settings))
    late = entry["device"] in settings.after_network and entry["fs_type"] != SWAP and "_netdev" not in options.split(",")
    return f"{options},_netdev" if late else options


def _may_fail(entry: Entry, settings: Settings) -> bool:
    """Return whether the start does not wait for a file system."""
    names = {entry["mount"], entry.get("space_id"), ALL if entry["mount"] != "/" else None}
    if entry["fs_type"] == SWAP and entry["device"] in settings.after_network:
        return True
    return bool(names & set(settings.nofail)) or "nofail" in str(entry.get("fstab_options") or "").split(",")


def _with_nofail(options: str, may_fail: bool) -> str:
    return f"{options},nofail" if may_fail and "nofail" not in options.split(",") else options


def _pass(entry: Entry) -> str:
    kind = FILESYSTEMS.get(str(entry["fs_type"]))
    if kind is None or not kind.checked_at_start:
        return "0"
    return "1" if entry["mount"] == "/" else "2"


def _in_fstab(line: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    fields = [with_escapes(line[key]) for key in ("src", "path", "fstype", "opts", "dump", "passno")]
    return fields in _lines(texts.get(FSTAB, ""))


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _container(entry: Entry, known: Entry, used: Sequence[Entry], settings: Settings, texts: Mapping[str, str]) -> Plain:
    """Return the line of a container that carries what is `used`: where nothing of that is waited for, it must not be either.

    A key that its line has stays, unless another one is asked for: without it the next start would ask somebody who is not there.
    Where the layout says what opens it, a key file that made it is none that opens it later.
    """
    name, source = entry["name"], f"UUID={known['uuid']}"
    names = {name, entry.get("space_id"), *((ALL,) if not used else ())}
    may_fail = bool(names & set(settings.nofail)) or (bool(used) and all(_may_fail(each, settings) for each in used))
    unlock = entry.get("unlock") or ()
    by_default = (crypttab_key(unlock) or _NO_KEY) if unlock else settings.key_file
    asked_for = _asked_by_name(entry, settings) or by_default
    lines = _lines(texts.get(CRYPTTAB, ""))
    there = next((fields[2] for fields in lines if fields[:2] == [name, source] and len(fields) > 2), _NO_KEY)
    key_file = asked_for if asked_for != _NO_KEY else there
    if TPM2 in {method["method"] for method in unlock} and not _asked_by_name(entry, settings):
        key_file = _NO_KEY
    options = ",".join([settings.crypttab_options, *crypttab_options(unlock, _before_network(used))])
    fields = [name, source, key_file, _with_nofail(options, may_fail)]
    return {"name": name, "line": " ".join(fields), "configured": fields in lines}


def _asked_by_name(entry: Entry, settings: Settings) -> str | None:
    return settings.key_files.get(entry["name"]) or settings.key_files.get(str(entry.get("space_id")))


def _before_network(used: Sequence[Entry]) -> bool:
    """Return whether what is used is opened by the initramfs, which has a network by its own means or none."""
    return any(entry["mount"] in _OF_INITRAMFS for entry in used)


def _after_network(schema: Mapping[str, t.Any]) -> Iterable[str]:
    """Give the devices that are there when a server has opened what they lie on. The start must not wait for them before."""
    for container in schema.get("luks") or ():
        used = _used_on(schema, container["name"])
        if TANG in [method["method"] for method in container.get("unlock") or ()] and not _before_network(used):
            yield from (entry["device"] for entry in used)


def _array(entry: Entry, known: Entry, texts: Mapping[str, str]) -> Plain:
    uuid = mdadm_uuid(known["uuid"])
    line = f"ARRAY {entry['name']} metadata={entry.get('metadata') or '1.2'} UUID={uuid}"
    lines = [fields for path in MDADM_CONFS for fields in _lines(texts.get(path, ""))]
    configured = any(fields[0] == "ARRAY" and f"UUID={uuid}" in fields for fields in lines)
    return {"name": entry["name"], "line": line, "uuid": uuid, "configured": configured}


def mdadm_uuid(uuid: str) -> str:
    """Return a UUID as mdadm writes it: `11223344-5566-...` is `11223344:55667788:...`."""
    digits = uuid.replace("-", "").replace(":", "")
    return ":".join(digits[start : start + 8] for start in range(0, len(digits), 8))


def needed_tools(schema: Mapping[str, t.Any]) -> list[str]:
    """Return the commands that a layout takes, in a fixed order."""
    kinds = [str(entry["fs_type"]) for entry in schema.get("fss") or ()]
    methods = {method["method"] for container in schema.get("luks") or () for method in container.get("unlock") or ()}
    tools: tuple[tuple[str, t.Any], ...] = (
        ("sfdisk", schema.get("parteds")),
        ("mdadm", schema.get("mds")),
        ("cryptsetup", schema.get("luks")),
        *((tool, method in methods) for method, tools in _TOOLS_OF_METHODS.items() for tool in tools),
        ("lvm", schema.get("vgs")),
        ("thin_check", schema.get("thin_pools")),
        ("cache_check", schema.get("caches")),
        ("zpool", schema.get("zpools")),
        *((f"mkfs.{kind}", kind != SWAP) for kind in sorted(set(kinds))),
    )
    return [tool for tool, wanted in tools if wanted]
