# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much room ZFS pools have on devices of a size, what may be called how, and what zfs says."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import zfs
from ansible_collections.bareon.allocator.plugins.module_utils._storage.zfs import (
    Shape,
    Vdev,
    is_dataset_name,
    is_pool_name,
    largest_leg,
    leg_for,
    outer_first,
    plain_value,
    read_properties,
    room,
    shape_of,
    why_no_property,
)

TIB = 1024**2


@pytest.mark.parametrize(
    ("kind", "legs", "vdevs", "shape", "data"),
    [
        ("mirror", 2, None, (1, 2), 1),
        ("mirror", 7, None, (3, 2), 3),
        ("mirror", 6, 2, (2, 3), 2),
        ("raidz1", 3, None, (1, 3), 2),
        ("raidz2", 12, 2, (2, 6), 8),
        ("raidz3", 11, None, (1, 11), 8),
        ("stripe", 3, None, (3, 1), 3),
    ],
)
def test_devices_are_divided_into_vdevs_of_one_size(kind: str, legs: int, vdevs: int | None, shape: tuple[int, int], data: int) -> None:
    found = shape_of(Vdev(kind), legs, vdevs)
    assert (found.vdevs, found.width) == shape
    assert found.data_legs == data


@pytest.mark.parametrize("shape", [Shape(Vdev.MIRROR, 2, 2), Shape(Vdev.RAIDZ1, 1, 4), Shape(Vdev.RAIDZ2, 2, 6), Shape(Vdev.STRIPE, 1, 1)])
def test_the_least_devices_for_some_room_are_the_least(shape: Shape) -> None:
    sizes = [64, 65, 100, 300, 1000, 8191, 8192, 102401, 4 * TIB]
    rooms = [room(shape, size) for size in sizes]
    assert rooms == sorted(rooms)
    for wanted in (1, 100, 1023, 65536, 3 * TIB):
        leg = leg_for(shape, wanted)
        assert room(shape, leg) >= wanted
        assert leg == 64 or room(shape, leg - 1) < wanted
        most = largest_leg(shape, wanted)
        assert most == leg or room(shape, most) <= wanted < room(shape, most + 1)


def test_what_zfs_keeps() -> None:
    # Of a mirror 1/32, and less than 1 % for labels and what fills no metaslab; of large pools 128 GiB.
    assert 0.96 < room(Shape(Vdev.MIRROR, 1, 2), TIB) / TIB < 31 / 32
    assert room(Shape(Vdev.STRIPE, 100, 1), TIB) > 100 * TIB * 0.99 - 128 * 1024
    # Small ones have 128 MiB less, but never less than half.
    assert 960 - 128 <= room(Shape(Vdev.MIRROR, 1, 2), 1005) <= 1000 - 128
    assert room(Shape(Vdev.MIRROR, 1, 2), 100) >= 40
    assert room(Shape(Vdev.MIRROR, 1, 2), 63) == 0
    # 128 KiB are 32 sectors: with 3 of data in a row and one of parity 43, and a row of padding to make them even.
    assert room(Shape(Vdev.RAIDZ1, 1, 4), TIB) / (4 * TIB) == pytest.approx(32 / 44 * 31 / 32, rel=0.01)
    assert room(Shape(Vdev.RAIDZ2, 1, 6), TIB) / (6 * TIB) == pytest.approx(4 / 6 * 31 / 32, rel=0.01)
    assert room(Shape(Vdev.RAIDZ1, 1, 4), TIB, ashift=9) > room(Shape(Vdev.RAIDZ1, 1, 4), TIB)


def test_names() -> None:
    assert all(is_pool_name(name) for name in ("tank", "rpool", "t1", "a.b:c-d_e", "logs"))
    assert not any(is_pool_name(name) for name in ("", "1t", "mirror2", "raidz", "spare", "log", "c0", "a b", "ä", "a" * 201))
    assert all(is_dataset_name(name) for name in ("home", "home/alice", "VM-1/disk.0", "4k"))
    assert not any(is_dataset_name(name) for name in ("", "/home", "home/", "a//b", "a@b", "-a", "a b"))
    assert outer_first(["b/a/c", "b", "a/x", "a"]) == ["a", "b", "a/x", "b/a/c"]


def test_properties() -> None:
    assert all(why_no_property(name, "on") is None for name in ("compression", "org.example:owner", "com.sun:auto-snapshot"))
    assert "write it as mount" in str(why_no_property("mountpoint", "/srv"))
    assert "encryption" in str(why_no_property("encryption", "on"))
    assert "no property" in str(why_no_property("Compression", "on"))
    assert "must be on, off, lz4" in str(why_no_property("compression", ""))
    assert "can be printed" in str(why_no_property("org.example:owner", "a\nb"))
    assert "of pools" in str(why_no_property("cachefile", "/etc/x"))
    assert [plain_value(value) for value in ("1M", "128k", "16KiB", "none", "131072", "on", "1.5x")] == [
        "1048576",
        "131072",
        "16384",
        "0",
        "131072",
        "on",
        "1.5x",
    ]
    said = "tank\ttype\tfilesystem\ntank\tquota\t0\ntank/a b\tmountpoint\t/a b\nno row\n"
    assert read_properties(said) == {"tank": {"type": "filesystem", "quota": "0"}, "tank/a b": {"mountpoint": "/a b"}}


STATUS = """  pool: tank
 state: ONLINE
 scrub: none requested
config:

\tNAME                STATE     READ WRITE CKSUM
\ttank                ONLINE       0     0     0
\t  mirror-0          ONLINE       0     0     0
\t    disk/by-id/x0   ONLINE       0     0     0
\t    spare-1         ONLINE       0     0     0
\t      /dev/sdb1     FAULTED      0     0     0
\t      /dev/sdc1     ONLINE       0     0     0
\t  /dev/sdd1         ONLINE       0     0     0
\tspecial
\t  mirror-2          ONLINE       0     0     0
\t    /dev/sde1       ONLINE       0     0     0
\tlogs\t
\t  mirror-1          ONLINE       0     0     0
\t    /dev/sdf1       ONLINE       0     0     0
\t    /dev/sdg1       ONLINE       0     0     0
\tcache
\t  disk/by-id/x4     ONLINE       0     0     0
\tspares
\t  /dev/sdc1         INUSE     currently in use

errors: No known data errors
"""


def test_what_a_pool_lies_on_is_read_from_its_status() -> None:
    assert [(vdev.part and str(vdev.part), vdev.name, vdev.devices) for vdev in zfs.read_status(STATUS, "tank")] == [
        (None, "mirror-0", ("/dev/disk/by-id/x0", "/dev/sdb1", "/dev/sdc1")),
        (None, "/dev/sdd1", ("/dev/sdd1",)),
        (None, "special mirror-2", ("/dev/sde1",)),
        ("log", "mirror-1", ("/dev/sdf1", "/dev/sdg1")),
        ("cache", "/dev/disk/by-id/x4", ("/dev/disk/by-id/x4",)),
        ("spare", "/dev/sdc1", ("/dev/sdc1",)),
    ]
    assert zfs.read_status("no pools available", "tank") == ()
    kinds = [zfs.vdev_kind(name) for name in ("mirror-0", "raidz2-11", "/dev/sda1", "draid1:4d:6c:0s-0", "special mirror-2")]
    assert kinds == [zfs.Vdev.MIRROR, zfs.Vdev.RAIDZ2, zfs.Vdev.STRIPE, None, None]


def test_a_device_of_a_pool_is_named_by_the_guid_of_its_label() -> None:
    """Names and values in XDR, after the label that `zpool create` writes; the vdevs that follow have guids as well."""
    number = bytes.fromhex("00000008 00000001")
    pair = b"\0\0\0\x24\0\0\0\x20"
    label = pair + b"\0\0\0\x09pool_guid\0\0\0" + number + (7).to_bytes(8, "big")
    label += pair + b"\0\0\0\x08top_guid" + number + (8).to_bytes(8, "big")
    assert zfs.member_guid(label) is None
    own = label + pair + b"\0\0\0\x04guid" + number + (11262577139157714474).to_bytes(8, "big")
    assert zfs.member_guid(own + pair + b"\0\0\0\x04guid" + number + (9).to_bytes(8, "big")) == "11262577139157714474"
