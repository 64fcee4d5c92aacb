# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every key of a static schema and of Bareon's list refuses what would be another word of a command, or another line of a file."""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Iterator

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.convert import read_bareon_list
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.parse import _KEYS as KEYS_OF_LIST
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._schema.table import STATIC
from ansible_collections.bareon.allocator.tests.support.host.hostile_values import OTHER_KINDS, PATHS, TEXTS, WORDS

MIB = 1024**2
ONE, TWO = "/dev/disk/by-id/wwn-1", "/dev/disk/by-id/wwn-2"
GUID = "0fc63daf-8483-4772-8e79-3d69d8477de4"
Plain = dict[str, t.Any]


def part(disk: str, number: int, **more: t.Any) -> Plain:
    begin = 1 + (number - 1) * 1000
    return {"name": f"{disk}-part{number}", "begin": begin, "end": begin + 1000, "count": number, "keep_data": False, **more}


EVERY_KEY: Plain = {
    "parteds": [
        {
            "name": ONE,
            "disk_id": ONE,
            "label": "gpt",
            "disk_size": 20000,
            "install_bootloader": True,
            "partitions": [
                part(ONE, 1, device=ONE, partition_type="primary", guid=GUID, uuid="11111111-2222-4333-8444-555555555501", flags=["raid"]),
                part(ONE, 2, space_id="os", partition_label="os", configdrive=False),
                *(part(ONE, number) for number in range(3, 8)),
                {
                    **part(ONE, 8),
                    "begin": 8000,
                    "end": 8001,
                    "start_bytes": 8000 * MIB + 512,
                    "end_bytes": 8000 * MIB + 1024,
                    "keep_data": True,
                },
            ],
        },
        {"name": TWO, "partitions": [part(TWO, number) for number in range(1, 8)]},
    ],
    "mds": [
        {
            "name": "/dev/md/data",
            "level": "raid10",
            "devices": [f"{ONE}-part1", f"{TWO}-part1"],
            "spares": [f"{TWO}-part7"],
            "metadata": "1.2",
            "bitmap": "none",
            "chunk": 64,
            "layout": "f2",
            "keep_data": False,
            "space_id": "data",
            "mdadm_conf_enabled": True,
        }
    ],
    "luks": [
        {
            "name": "data-crypt",
            "device": "/dev/md/data",
            "keep_data": False,
            "space_id": "data",
            "key_file": "/etc/keys/data",
            "crypttab_options": "luks,discard",
            "crypttab_enabled": True,
            "unlock": [
                {"method": "key_file", "path": "/etc/keys/data"},
                {"method": "tang", "url": "http://tang.example", "thumbprint": "a" * 43},
                {"method": "tpm2", "pcrs": [7], "pin": False},
            ],
        }
    ],
    "pvs": [
        {"name": f"{ONE}-part2", "metadatasize": 16, "metadatacopies": 2, "keep_data": False, "space_id": "os"},
        {"name": f"{TWO}-part2"},
    ],
    "vgs": [{"name": "os", "pvnames": [f"{ONE}-part2", f"{TWO}-part2"], "extent_size": 4, "keep_data": False, "space_id": "os"}],
    "thin_pools": [
        {"name": "pool", "vgname": "os", "size": 100, "metadata_size": 4, "chunk_size": 64, "keep_data": False, "space_id": "pool"}
    ],
    "lvs": [
        {"name": "root", "vgname": "os", "size": 400, "device": "/dev/mapper/os-root", "keep_data": False, "space_id": "root"},
        {"name": "thin", "vgname": "os", "size": 400, "pool": "pool"},
        {
            **{"name": "wide", "vgname": "os", "size": 400, "stripes": 2, "stripe_size": 64},
            "devices": [f"{ONE}-part2", f"{TWO}-part2"],
        },
    ],
    "caches": [
        {
            "name": "fast",
            "vgname": "os",
            "origin": "root",
            "device": f"{TWO}-part2",
            "mode": "writethrough",
            "keep_data": False,
            "space_id": "fast",
        }
    ],
    "zpools": [
        {
            "name": "tank",
            "vdevs": [{"type": "mirror", "devices": [f"{ONE}-part3", f"{TWO}-part3"]}],
            "logs": [{"type": "stripe", "devices": [f"{ONE}-part4"]}],
            "caches": [f"{TWO}-part4"],
            "spares": [f"{TWO}-part5"],
            "ashift": 12,
            "mount": "/tank",
            "properties": {"atime": "off"},
            "datasets": [{"name": "home", "mount": "/home", "quota": 100, "reservation": 10, "properties": {"compression": "lz4"}}],
            "space_id": "tank",
        }
    ],
    "fss": [
        {
            "device": "/dev/mapper/os-root",
            "mount": "/",
            "fs_type": "ext4",
            "fs_options": "-m 1",
            "fs_label": "root",
            "uuid": "11111111-2222-4333-8444-555555555502",
            "fstab_enabled": True,
            "fstab_options": "noatime",
            "os_id": [],
            "keep_data": False,
            "space_id": "root",
        },
        {
            "device": f"{ONE}-part6",
            "fs_type": "btrfs",
            "devices": [f"{ONE}-part6", f"{TWO}-part6"],
            "level": "raid1",
            "subvolumes": [{"name": "@srv", "mount": "/srv", "fstab_options": "nodev", "quota": 100}],
        },
    ],
}
EVERY_KEY_OF_LIST: list[Plain] = [
    {
        "type": "disk",
        "id": {"type": "name", "value": "sda"},
        "size": "10000 MiB",
        "volumes": [
            {"type": "boot", "size": 100, "name": "boot", "mount": "/boot", "file_system": "ext4", "disk_label": "b", "keep_data": False},
            {
                "type": "partition",
                "size": 600,
                "name": "data",
                "partition_guid": GUID,
                "mount": "/data",
                "file_system": "xfs",
                "disk_label": "data",
                "fstab_options": "noatime",
                "fstab_enabled": True,
                "keep_data": False,
            },
            {"type": "raid", "size": 600, "name": "both", "level": "raid1", "mount": "/both", "file_system": "ext4"},
            {"type": "pv", "size": 2000, "vg": "os", "keep_data": False, "lvm_meta_size": 64},
            {"type": "lvm_meta_pool"},
        ],
    },
    {"type": "disk", "id": "/dev/sdb", "size": 10000, "volumes": [{"type": "raid", "size": 600, "mount": "/both", "file_system": "ext4"}]},
    {"type": "vg", "id": "os", "volumes": [{"type": "lv", "size": 600, "name": "root", "mount": "/", "file_system": "ext4"}]},
]
FOR_PEOPLE = ("space_id", "disk_id", "fs_label", "disk_label", "partition_label")
"""Keys with text that may have blanks, quotation marks and the like."""
SAYS_NOTHING = ("configdrive", "os_id", "extra", "free_space", "label", "min_size", "_allocate_size", "images")
ALSO_RIGHT: dict[str, tuple[t.Any, ...]] = {
    "fs_options": (" ",),
    "size": (1.5,),
    "level": (0, False),
    **dict.fromkeys(("atime", "compression"), (True, False)),
}
"""Values that some keys take: no options, sizes with a decimal point, raid0 by its number, the truths of YAML for on and off."""
HARDWARE = {"disks": [{"id": f"/dev/sd{name}", "dev": f"/dev/sd{name}", "size": 20000} for name in "ab"]}


def places(value: t.Any, path: tuple[t.Any, ...] = ()) -> Iterator[tuple[tuple[t.Any, ...], t.Any]]:
    """Give every key and every item, with its value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key), item
        yield from places(item, (*path, key))


def spelled(path: tuple[t.Any, ...], head: str = "") -> str:
    """Return a place as messages name it: of a list of texts and of properties the key alone."""
    return head + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def with_value(schema: t.Any, path: tuple[t.Any, ...], value: t.Any) -> t.Any:
    changed = copy.deepcopy(schema)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def hostile(key: str, right: t.Any) -> Iterator[t.Any]:
    """Give values that are none of a key whose right value this is."""
    if isinstance(right, bool):
        yield from (*TEXTS, *WORDS, *(value for value in OTHER_KINDS if not isinstance(value, bool)))
    elif isinstance(right, int):
        others = (value for value in OTHER_KINDS if value != 0 or isinstance(value, bool))
        yield from (*TEXTS, *WORDS, *(value for value in others if value not in ALSO_RIGHT.get(key, ())))
    elif isinstance(right, (list, dict)):
        yield from (*TEXTS, *WORDS, 1.5, True, 7, {"a": "b"} if isinstance(right, list) else ["a"])
    else:
        texts = TEXTS if key in FOR_PEOPLE else (*TEXTS, *PATHS, *WORDS)
        allowed = ALSO_RIGHT.get(key, ())
        yield from (value for value in (*texts, *OTHER_KINDS) if not any(value is right or value == right for right in allowed))


def cases(schema: t.Any, head: str) -> list[t.Any]:
    found = []
    for path, right in places(schema):
        key = next(part for part in reversed(path) if isinstance(part, str)) if any(isinstance(part, str) for part in path) else ""
        if key in SAYS_NOTHING or isinstance(path[-1], int) and isinstance(right, dict):
            continue
        found.append(pytest.param(path, key, right, id=spelled(path, head)))
    return found


def named(mistakes: t.Sequence[str], path: tuple[t.Any, ...], head: str) -> bool:
    """Return whether a mistake names this place, or what holds it where it is an item of a list or a mapping of words."""
    wanted = {spelled(path[:end], head).lstrip(".") for end in (len(path), len(path) - 1)}
    inside = f"{spelled(path, head).lstrip('.')}."
    return any(mistake.split(": ")[0] in wanted or mistake.startswith(inside) for mistake in mistakes)


def keys_in(schema: t.Any) -> Iterator[str]:
    """Give the keys of all mappings that a JSON Schema describes."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for inner in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from keys_in(inner)


def test_every_key_is_tried() -> None:
    tried = {key for path, _value in places(EVERY_KEY) for key in path if isinstance(key, str)}
    assert set(keys_in(STATIC.json_schema())) <= tried
    parse_static_schema(EVERY_KEY)
    in_list = {key for path, _value in places(EVERY_KEY_OF_LIST) for key in path if isinstance(key, str)}
    assert {key for keys in KEYS_OF_LIST.values() for key in keys} - set(SAYS_NOTHING) <= in_list
    assert read_bareon_list(EVERY_KEY_OF_LIST, HARDWARE).mistakes == ()


@pytest.mark.parametrize(("path", "key", "right"), cases(EVERY_KEY, ""))
def test_a_static_schema_takes_none_of_it(path: tuple[t.Any, ...], key: str, right: t.Any) -> None:
    for value in hostile(key, right):
        mistakes: tuple[str, ...] = ()
        try:
            parse_static_schema(with_value(EVERY_KEY, path, value))
        except SchemaMistakes as error:
            mistakes = error.mistakes
        assert named(mistakes, path, ""), (value, mistakes)


@pytest.mark.parametrize(("path", "key", "right"), cases(EVERY_KEY_OF_LIST, "schema"))
def test_a_list_takes_none_of_it(path: tuple[t.Any, ...], key: str, right: t.Any) -> None:
    for value in hostile(key, right):
        mistakes = read_bareon_list(with_value(EVERY_KEY_OF_LIST, path, value), HARDWARE).mistakes
        assert named(mistakes, path, "schema"), (value, mistakes)
