# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A finished layout -> what the host has to know: mounts, swap, crypttab and mdadm.conf, and which of these are missing.

Everything is found again by UUID, never by a name that may change at the next boot.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._schema.model import DesiredArray, DesiredContainer, Layout, Mount
from ....module_utils._schema.starting import ESP_PLACES
from ....module_utils._schema.static import layout_of
from ....module_utils._storage.boot_tables import BOOT_SETTINGS, CRYPTTAB, FSTAB, MDADM_CONFS
from ....module_utils._storage.crypttab import NO_KEY, PLAIN_OPTIONS, Container, read_containers
from ....module_utils._storage.derived import is_derived
from ....module_utils._storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP
from ....module_utils._storage.fstab import Entry as Line
from ....module_utils._storage.fstab import plain_source, read_entries, without_escapes
from ....module_utils._storage.mdadm_conf import ArrayLine, mdadm_uuid, read_arrays
from ....module_utils._storage.options.words import NOTHING, of_every_filesystem, words_of
from ....module_utils._storage.unlock import TANG, TPM2, crypttab_key, crypttab_options
from .boot_settings import Asked, Memory, Remembered, read_boot_settings, settle, write_boot_settings

Plain = dict[str, t.Any]
Found = Mapping[str, t.Any]
"""What disk_layout returned of a file system, a container or an array: its UUID, and where it is mounted."""
Texts = Mapping[str, str]

MOUNTINFO = "/proc/self/mountinfo"
SWAP_TARGET = "[SWAP]"
ALL = "all"
"""In `nofail`, all but the root."""

_NOFAIL, _CRYPTTAB_OPTIONS = "nofail", "crypttab_options"
_ANY_TYPE = "auto"
_OF_INITRAMFS = ("/", "/usr")
_TOOLS_OF_METHODS = {TANG: ("clevis", "clevis-luks-unlock", "clevis-luks-askpass"), TPM2: ("systemd-cryptenroll", "tpm2")}
"""The last of each stands for what opens it at a start: Clevis' answer to systemd's question, and the libraries of TPMs."""


@dataclass(frozen=True)
class Settings:
    """How a layout is used. For None the host's own settings stay.

    `root` is where mount points lie on the running host. With `new_system` the tables are those of a system that lies there, which
    knows nothing of `root`. `nofail` names mount points and spaces, or has `all` for all but the root. `key_files` are paths by container
    or space, `key_file` is that of all others.
    """

    root: str = "/"
    new_system: bool = False
    nofail: tuple[str, ...] | None = None
    key_files: Mapping[str, str] = field(default_factory=dict)
    key_file: str | None = None
    crypttab_options: str | None = None


@dataclass(frozen=True)
class _Known:
    """What lines follow from: how the layout is used, what the tables say, what the host remembers.

    `without_waiting` are mount points, and `after_network` devices, that a start must not wait for; both follow from the layout.
    """

    settings: Settings
    texts: Texts
    memory: Memory
    without_waiting: frozenset[str]
    after_network: frozenset[str]

    def remembered(self, kind: str, name: str) -> Remembered | None:
        return self.memory.get(kind, {}).get(name)


def host_files(made: Mapping[str, t.Any], settings: Settings, present: Texts | None = None) -> Plain:
    """Return `{mounts, swaps, containers, arrays, boot_settings}`, each with `configured` (and `active`) for what is so already.

    `made` is what disk_layout returned: `schema`, and with their UUIDs `filesystems`, `containers` and `arrays`. `present` are the texts
    of the host's files by path. Raises KeyError with the name of what has no UUID, and InputError for what is no schema.
    """
    texts = present or {}
    layout = layout_of(made["schema"])
    remembers = read_boot_settings(texts.get(BOOT_SETTINGS, ""))
    known = _Known(settings, texts, remembers, frozenset(_stood_in_for(layout)), frozenset(_after_network(layout)))
    used = [(mount, _found(made, "filesystems", mount.filesystem.device)) for mount in layout.mounts()]
    mounted = sorted((pair for pair in used if pair[0].path != SWAP), key=lambda pair: _depth(pair[0].path))
    lines = {
        "mounts": [_mount(mount, found, known) for mount, found in mounted],
        "swaps": [_swap(mount, found, known) for mount, found in used if mount.path == SWAP],
        "containers": [
            _container(container, _found(made, "containers", container.name), _used_on(layout, container), known)
            for container in layout.containers
            if container.in_crypttab
        ],
    }
    new = {kind: _to_remember(lines[kind], remembers[kind]) for kind in lines}
    memory = write_boot_settings({kind: {**remembers[kind], **new[kind]} for kind in lines})
    both = {
        kind: {**remembers[kind], **{name: one.together_with(remembers[kind].get(name)) for name, one in new[kind].items()}}
        for kind in lines
    }
    return {
        **{kind: [_without_memory(line) for line in found] for kind, found in lines.items()},
        "arrays": [_array(array, _found(made, "arrays", array.device), texts) for array in layout.arrays if array.in_mdadm_conf],
        "boot_settings": [
            {
                **{"path": BOOT_SETTINGS, "text": memory, "configured": memory == write_boot_settings(remembers)},
                **{"before_tables": write_boot_settings(both), "prepared": both == remembers},
            },
        ],
    }


def _to_remember(lines: Iterable[Plain], before: Mapping[str, Remembered]) -> dict[str, Remembered]:
    """Return what has to be remembered of lines that are written now, or to which an option of the run has something to say."""
    found = {str(line["remember_as"]): t.cast("tuple[bool, Remembered]", (line["configured"], line["remember"])) for line in lines}
    return {
        name: line for name, (configured, line) in found.items() if not configured or line.given != before.get(name, Remembered()).given
    }


def _without_memory(line: Plain) -> Plain:
    return {key: value for key, value in line.items() if key not in ("remember", "remember_as")}


def _stood_in_for(layout: Layout) -> Iterable[str]:
    """Give where an ESP is mounted that has its like on other disks: a start from one of those must not wait for a disk that is gone."""
    fats = [filesystem for filesystem in layout.filesystems if filesystem.type == "vfat"]
    copies = {filesystem.space for filesystem in fats if filesystem.mount == NOT_MOUNTED}
    return [filesystem.mount for filesystem in fats if filesystem.space in copies and filesystem.mount in ESP_PLACES]


def conflicting_mounts(schema: Mapping[str, t.Any], hardware: Mapping[str, t.Any], root: str, mountinfo: str) -> list[str]:
    """Return the mount points of a schema where something else is mounted: what lies on none of the schema's disks."""
    layout = layout_of(schema)
    own = {disk.id for disk in layout.disks}
    ours = {place for disk in hardware.get("disks") or () if disk.get("id") in own for place in _mountpoints(disk)}
    taken = {without_escapes(fields[4]) for line in mountinfo.split("\n") if len(fields := line.split(" ")) > 4}
    wanted = [below(root, mount.path) for mount in layout.mounts() if mount.path != SWAP]
    return [place for place in wanted if place in taken and place not in ours]


def below(root: str, path: str) -> str:
    """Return a path of a system whose root lies at `root`."""
    return f"{root.rstrip('/')}{path.rstrip('/')}" or "/"


def _used_on(layout: Layout, container: DesiredContainer) -> list[Mount]:
    """Return what is mounted of a container, and swap: straight on it, or on volumes of a group that it is a part of."""
    devices = set(layout.devices_above(container.device))
    return [mount for mount in layout.mounts() if mount.filesystem.device in devices]


def _found(made: Mapping[str, t.Any], kind: str, name: str) -> Found:
    """Return what is known of the thing of that name, which is that of its device, or of the container."""
    for entry in made.get(kind) or ():
        if name in (entry.get("device"), entry.get("name")):
            return t.cast("Found", entry)
    raise KeyError(name)


def _depth(mount: str) -> tuple[int, str]:
    return (len([part for part in mount.split("/") if part]), mount)


def _mountpoints(disk: Mapping[str, t.Any]) -> Iterable[str]:
    for part in (*(disk.get("partitions") or ()), *(disk.get("holders") or ())):
        yield from part.get("mountpoints") or ()


def _mount(mount: Mount, found: Found, known: _Known) -> Plain:
    target = below(known.settings.root, mount.path)
    path = mount.path if known.settings.new_system else target
    there = next((line for line in read_entries(known.texts.get(FSTAB, "")) if _is_line_of(line, path, found, known)), None)
    new = Line(f"UUID={found['uuid']}", path, mount.filesystem.type, passno=_pass(mount))
    line = _line(new, there, mount, found, known, "mounts", path)
    return {**line, "target": target, "active": target in (found.get("mountpoints") or ())}


def _swap(mount: Mount, found: Found, known: _Known) -> Plain:
    there = next((line for line in read_entries(known.texts.get(FSTAB, "")) if line.is_swap and _is_named(line.src, found)), None)
    new = Line(f"UUID={found['uuid']}", NOT_MOUNTED, SWAP)
    device = mount.filesystem.device
    line = _line(new, there, mount, found, known, "swaps", device)
    return {**line, "device": device, "active": SWAP_TARGET in (found.get("mountpoints") or ())}


def _line(new: Line, there: Line | None, mount: Mount, found: Found, known: _Known, kind: str, name: str) -> Plain:
    """Return a line of fstab; words of `there` stay, as far as they fit the device's present contents."""
    remembered, present = known.remembered(kind, name), None
    final = new
    if there is not None:
        same = there.fstype in (new.fstype, _ANY_TYPE)
        present = words_of(there.opts) if same else of_every_filesystem(words_of(there.opts))
        final = replace(there, src=there.src if _is_named(there.src, found) else new.src)
        final = final if same else replace(final, fstype=new.fstype, passno=new.passno)
    # What is asked of the options of a mount.
    filesystem = mount.filesystem
    schema = [word for word in words_of(mount.options) if word != NOTHING]
    # FAT has no modes: what starts the system, and the seed of its chance numbers, would be there for everybody to read.
    private = not schema and filesystem.type == "vfat" and mount.path in ESP_PLACES
    late = filesystem.device in known.after_network and filesystem.type != SWAP
    follows = [*(["_netdev"] if late else []), *(["nofail"] if _never_waited_for(mount, known) else [])]
    fresh = () if schema else ("umask=0077",) if private else (NOTHING,)
    settled = settle(
        "fstab", present, remembered, Asked(fresh, tuple(follows), tuple(schema), {_NOFAIL: _given_nofail(mount, known.settings)})
    )
    final = replace(final, opts=",".join(settled.words) or NOTHING)
    return {
        **{key: getattr(final, key) for key in ("src", "path", "fstype", "opts", "dump", "passno")},
        "origins": dict(settled.origins),
        "configured": there == final,
        "remember_as": name,
        "remember": Remembered(final.opts, given=settled.given),
    }


def _is_line_of(line: Line, path: str, found: Found, known: _Known) -> bool:
    """Return whether a line is this mount's: by the device's present contents, or by contents of a plan that nothing has any more."""
    if line.is_swap or (line.path.rstrip("/") or "/") != path:
        return False
    return _is_named(line.src, found) or (not known.settings.new_system and is_derived(plain_source(line.src).removeprefix("UUID=")))


def _is_named(source: str, found: Found) -> bool:
    """Return whether a source of a table is this device, by a name that nothing else has."""
    return plain_source(source) in {plain_source(name) for name in (f"UUID={found['uuid']}", *(found.get("names") or ()))}


def _never_waited_for(mount: Mount, known: _Known) -> bool:
    """Return whether it follows from the layout that the start does not wait for a file system."""
    return mount.path in known.without_waiting or (mount.filesystem.is_swap and mount.filesystem.device in known.after_network)


def _given_nofail(mount: Mount, settings: Settings) -> tuple[str, ...] | None:
    if settings.nofail is None:
        return None
    names = {mount.path, mount.filesystem.space, ALL if mount.path != "/" else None}
    return ("nofail",) if names & set(settings.nofail) else ()


def _may_fail(mount: Mount, known: _Known) -> bool:
    """Return whether schema or layout have the start not wait for a file system."""
    return _never_waited_for(mount, known) or "nofail" in words_of(mount.options)


def _pass(mount: Mount) -> str:
    if not FILESYSTEMS[mount.filesystem.type].checked_at_start:
        return "0"
    return "1" if mount.path == "/" else "2"


def _container(container: DesiredContainer, found: Found, used: Sequence[Mount], known: _Known) -> Plain:
    """Return the line of a container that carries what is `used`: where nothing of that is waited for, it must not be either.

    A key that its line has stays, unless another one is asked for: without it the next start would ask an absent user.
    """
    name, unlock = container.name, container.unlock
    there = next(
        (line for line in read_containers(known.texts.get(CRYPTTAB, "")) if line.name == name and _is_container(line, found)), None
    )
    remembered = known.remembered("containers", name)
    had = there.key_file if there is not None else remembered.key_file if remembered is not None else ""
    asked_for, origin = _key_asked_for(container, known.settings)
    key_file = asked_for if asked_for is not None else had or NO_KEY
    implied = bool(used) and all(_may_fail(each, known) for each in used)
    asked = Asked(
        fresh=(PLAIN_OPTIONS,),
        layout=(*crypttab_options(unlock, _before_network(used)), *(("nofail",) if implied else ())),
        schema=tuple(words_of(container.crypttab_options)),
        given={
            _CRYPTTAB_OPTIONS: None if known.settings.crypttab_options is None else tuple(words_of(known.settings.crypttab_options)),
            _NOFAIL: None if implied else _given_nofail_below(container, used, known),
        },
    )
    settled = settle("crypttab", None if there is None else words_of(there.options), remembered, asked)
    source = there.source if there is not None and _is_named(there.source, found) else f"UUID={found['uuid']}"
    line = Container(name, source, key_file, ",".join(settled.words) or PLAIN_OPTIONS)
    configured = there is not None and line.says(there)
    key_from = origin if asked_for is not None else "crypttab" if there is not None else BOOT_SETTINGS
    return {
        **{"name": name, "source": source, "key_file": key_file, "options": line.options},
        "line": line.line if not configured else f"{line.name} {line.source} {line.key_file} {line.options}",
        "origins": {**({key_file: key_from} if key_file != NO_KEY else {}), **settled.origins},
        "configured": configured,
        "remember_as": name,
        "remember": Remembered(line.options, "" if key_file == NO_KEY else key_file, settled.given),
    }


def _is_container(line: Container, found: Found) -> bool:
    return _is_named(line.source, found) or is_derived(plain_source(line.source).removeprefix("UUID="))


def _key_asked_for(container: DesiredContainer, settings: Settings) -> tuple[str | None, str]:
    """Return the key file that is asked for, and by what; None where none is asked for, and what there is stays.

    Where the layout says what opens a container, a key file that made it is none that opens it later.
    """
    unlock = container.unlock
    by_name = settings.key_files.get(container.name) or settings.key_files.get(container.space)
    if by_name:
        return by_name, "key_files"
    if container.key_file:
        return container.key_file, "the schema"
    if TPM2 in {method.kind for method in unlock}:
        return NO_KEY, "the schema"
    if unlock:
        return crypttab_key(unlock) or None, "the schema"
    given = settings.key_file
    return (given, "key_file") if given is not None and given != NO_KEY else (None, "")


def _given_nofail_below(container: DesiredContainer, used: Sequence[Mount], known: _Known) -> tuple[str, ...] | None:
    """Return what the option `nofail` asks of a container: by its own names, or by those of all that is used on it."""
    given = known.settings.nofail
    if given is None:
        return None
    names = {container.name, container.space, *((ALL,) if not used else ())}
    above = bool(used) and all(_may_fail(each, known) or _given_nofail(each, known.settings) for each in used)
    return ("nofail",) if above or names & set(given) else ()


def _before_network(used: Sequence[Mount]) -> bool:
    """Return whether what is used is opened by the initramfs, which has a network by its own means or none."""
    return any(mount.path in _OF_INITRAMFS for mount in used)


def _after_network(layout: Layout) -> Iterable[str]:
    """Give the devices that are there when a server has opened what they lie on. The start must not wait for them before."""
    for container in layout.containers:
        used = _used_on(layout, container)
        if TANG in [method.kind for method in container.unlock] and not _before_network(used):
            yield from (mount.filesystem.device for mount in used)


def _array(array: DesiredArray, found: Found, texts: Texts) -> Plain:
    line = ArrayLine(array.device, mdadm_uuid(found["uuid"]), array.metadata)
    configured = any(there.uuid == line.uuid for path in MDADM_CONFS for there in read_arrays(texts.get(path, "")))
    return {"name": line.name, "line": line.line, "uuid": line.uuid, "metadata": line.metadata, "configured": configured}


def needed_tools(schema: Mapping[str, t.Any]) -> list[str]:
    """Return the commands that a layout takes, in a fixed order."""
    layout = layout_of(schema)
    methods = {method.kind for container in layout.containers for method in container.unlock}
    tools: tuple[tuple[str, t.Any], ...] = (
        ("sfdisk", layout.disks),
        ("mdadm", layout.arrays),
        ("cryptsetup", layout.containers),
        *((tool, method in methods) for method, tools in _TOOLS_OF_METHODS.items() for tool in tools),
        ("lvm", layout.groups),
        ("thin_check", layout.pools),
        ("cache_check", layout.caches),
        ("zpool", layout.zpools),
        *((f"mkfs.{kind}", kind != SWAP) for kind in sorted({filesystem.type for filesystem in layout.filesystems})),
    )
    return [tool for tool, wanted in tools if wanted]
