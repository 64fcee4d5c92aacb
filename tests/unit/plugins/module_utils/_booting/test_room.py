# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an archive of tar takes in the file systems of a layout, which is counted without unpacking it."""

from __future__ import annotations

import os
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting.room import why_no_room
from ansible_collections.bareon.allocator.plugins.module_utils._booting.system import Archive, list_archive, unknown_accounts
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine

MIB = 1024**2


def schema(*mounts, **more):
    """Partitions with file systems, each with its size in MiB and where it is mounted."""
    parts, end = [], 1
    for number, (size, _mount) in enumerate(mounts, start=1):
        parts.append({"count": number, "begin": end, "end": end + size})
        end += size
    found = [{"device": f"/dev/sda{number}", "mount": mount, "fs_type": "ext4"} for number, (_size, mount) in enumerate(mounts, start=1)]
    found[0].update(more)
    return {"parteds": [{"name": "/dev/sda", "partitions": parts}], "fss": found}


def sizes(**files):
    return Archive("image.tar", {path.replace("__", "/"): size * MIB for path, size in files.items()})


def test_each_file_counts_where_it_is_mounted():
    image = sizes(vmlinuz=1, boot__vmlinuz=50, boot__efi__grub=20, boots=30)
    wanted = [(31, "/"), (50, "/boot"), (20, "/boot/efi")]
    assert why_no_room(schema(*wanted), image, 0) == ()
    for at, (size, mount) in enumerate(wanted):
        small = [*wanted[:at], (size - 1, mount), *wanted[at + 1 :]]
        assert why_no_room(schema(*small), image, 0) == (
            f"image.tar takes {size} MiB in {mount}, which has {size - 1} MiB: make {mount} larger, or the archive smaller",
        )


def test_an_archive_that_is_copied_needs_room_beside_what_is_in_it():
    image = sizes(usr__all=90)
    assert why_no_room(schema((100, "/")), image, 10 * MIB) == ()
    assert "takes 101 MiB in /, which has 100 MiB" in why_no_room(schema((100, "/")), image, 10 * MIB + 1)[0]


def test_what_is_compressed_or_not_mounted_is_not_counted():
    image = sizes(usr__all=90)
    assert why_no_room(schema((10, "/"), fs_type="btrfs", fstab_options="compress=zstd"), image, 0) == ()
    assert why_no_room(schema((10, "/srv")), image, 0) == ()
    assert why_no_room(schema((10, "none")), image, 0) == ()
    assert why_no_room({}, image, 0) == ()


def test_a_pool_of_zfs_counts_as_large_enough():
    wanted = schema((10, "/"), (200, "none"))
    del wanted["fss"][1]
    pool = {"name": "tank", "vdevs": [{"type": "stripe", "devices": ["/dev/sda2"]}], "datasets": [{"name": "usr", "mount": "/usr"}]}
    assert why_no_room({**wanted, "zpools": [pool]}, sizes(usr__all=900, etc__all=10), 0) == ()
    assert len(why_no_room(wanted, sizes(usr__all=900, etc__all=10), 0)) == 1


def test_mistakes_of_the_schema_are_told():
    with pytest.raises(SchemaMistakes, match="end"):
        why_no_room({"parteds": [{"name": "/dev/sda", "partitions": [{"count": 1, "begin": 1}]}], "fss": [{"mount": "/"}]}, sizes(), 0)


def test_links_and_holes_take_nothing(tmp_path):
    root = tmp_path / "root"
    (root / "with blank").mkdir(parents=True)
    (root / "file").write_bytes(os.urandom(300_000))
    (root / "with blank" / "a -> b").write_bytes(b"12345")
    os.link(root / "file", root / "hard")
    (root / "soft").symlink_to("file")
    with open(root / "holes", "wb") as file:
        file.truncate(50 * MIB)
    subprocess.run(["tar", "--create", "--sparse", f"--file={tmp_path}/image.tar", f"--directory={root}", "--sort=name", "."], check=True)
    found = list_archive(f"{tmp_path}/image.tar", LocalMachine()).sizes
    assert found == {"": 0, "file": 300_000, "hard": 0, "holes": found["holes"], "soft": 0, "with blank": 0, "with blank/a -> b": 5}
    assert found["holes"] <= 512


@pytest.mark.parametrize("before", ["", "./"])
def test_users_are_looked_for_in_the_archive(tmp_path, before):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\npostgres:x:101:102::/:/bin/false\n", encoding="utf-8")
    (tmp_path / "etc" / "group").write_text("root:x:0:\n", encoding="utf-8")
    image = f"{tmp_path}/image.tar"
    subprocess.run(["tar", "--create", f"--file={image}", f"--directory={tmp_path}", f"{before}etc"], check=True)
    assert list(unknown_accounts(image, LocalMachine(), [], [])) == []
    assert list(unknown_accounts(image, LocalMachine(), ["postgres", "root"], ["root"])) == []
    assert list(unknown_accounts(image, LocalMachine(), ["postgre"], ["postgres"])) == [
        f"there is no user postgre in {image}, which is to own a mount point",
        f"there is no group postgres in {image}, which is to own a mount point",
    ]
