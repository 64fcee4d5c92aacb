# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, read_make_options
from ansible_collections.bareon.allocator.plugins.module_utils._storage.options.mounts import mistakes_in
from ansible_collections.bareon.allocator.plugins.module_utils._storage.zfs import why_no_property
from ansible_collections.bareon.allocator.tests.support.host.hostile_options import hostile_options, hostile_properties
from ansible_collections.bareon.allocator.tests.support.host.usual_options import MAKE, MOUNT

OTHER = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"


@pytest.mark.parametrize(("fs_type", "text"), [(fs_type, text) for fs_type, texts in MAKE.items() for text in texts])
def test_what_operators_give_is_taken(fs_type: str, text: str) -> None:
    words, mistakes = read_make_options(fs_type, text)
    assert (bool(words), mistakes) == (bool(text), ()), text
    assert read_make_options(fs_type, " ".join(words)) == (words, ())


@pytest.mark.parametrize(("fs_type", "text"), [(fs_type, text) for fs_type, texts in MOUNT.items() for text in texts])
def test_what_operators_mount_with_is_taken(fs_type: str, text: str) -> None:
    assert list(mistakes_in(fs_type, text)) == []


@pytest.mark.parametrize("fs_type", FILESYSTEMS)
def test_no_other_disk_can_be_named(fs_type: str) -> None:
    tried = [hostile for hostile in hostile_options(OTHER) if hostile.fs_type == fs_type]
    assert len(tried) > 400
    for _fs_type, key, text in tried:
        if key == "fs_options":
            words, mistakes = read_make_options(fs_type, text)
            assert not any(OTHER in word for word in words), text
            assert read_make_options(fs_type, text, several=True)[1], text
        else:
            mistakes = tuple(mistakes_in(fs_type, text))
        assert mistakes, text


def test_no_other_disk_can_be_named_in_properties() -> None:
    for name, value in hostile_properties(OTHER):
        assert why_no_property(name, value) is not None, name


@pytest.mark.parametrize(
    ("fs_type", "text", "word", "instead"),
    [
        ("ext4", "-J device=/dev/sdb", "device", "log_of"),
        ("ext4", "-L x", "-L", "fs_label"),
        ("ext4", "-U random", "-U", "uuid"),
        ("ext4", "-O ^has_journal,journal_dev", "journal_dev", "cache_of"),
        ("ext4", "-F", "-F", "wipe"),
        ("ext4", "-m 60", "-m", "from 0 to 50"),
        ("ext4", "-b 4x", "-b", "a size such as"),
        ("ext4", "-m", "-m", "a number"),
        ("ext4", "-m 1 -m 2", "-m", "twice"),
        ("ext4", "-E lazy_itable_init=2", "lazy_itable_init", "0 or 1"),
        ("ext4", "-E lazy_itable=1", "lazy_itable", "lazy_itable_init"),
        ("ext4", "-Q", "-Q", "-m"),
        ("ext4", "100M", "100M", "devices of the schema"),
        ("ext4", "'", "quotation", "split"),
        ("xfs", "-l logdev=/dev/sdb", "logdev", "log_of"),
        ("xfs", "-r rtdev=/dev/sdb", "-r", "cache_of"),
        ("xfs", "-m uuid=00000000-0000-0000-0000-000000000000", "uuid", "static schema"),
        ("xfs", "-d size=1g", "size", "space"),
        ("xfs", "-d su=64k,su=64k", "su", "twice"),
        ("btrfs", "-m raid1", "-m", "single or dup"),
        ("btrfs", "--csum=md5", "--csum", "xxhash"),
        ("btrfs", "--label x", "--label", "fs_label"),
        ("f2fs", "-c /dev/sdb", "-c", "space of its own"),
        ("vfat", "-n X", "-n", "fs_label"),
        ("swap", "--uuid x", "--uuid", "uuid"),
    ],
)
def test_what_is_refused_is_named_with_what_to_use_instead(fs_type: str, text: str, word: str, instead: str) -> None:
    _words, mistakes = read_make_options(fs_type, text)
    assert len(mistakes) == 1, mistakes
    assert word in mistakes[0]
    assert instead in mistakes[0]


def test_all_that_is_refused_is_named_at_once() -> None:
    _words, mistakes = read_make_options("ext4", "-L a -U b -m 90 /dev/sdb")
    assert len(mistakes) == 4, mistakes


def test_levels_say_how_a_btrfs_lies_on_several_devices() -> None:
    assert read_make_options("btrfs", "-n 16k -m dup", several=True)[0] == ("-n", "16k")
    assert "level" in read_make_options("btrfs", "-m dup", several=True)[1][0]


@pytest.mark.parametrize(
    ("fs_type", "text", "says"),
    [
        ("ext4", "noatime,journal_path=/dev/sdb", "has journal_path: "),
        ("xfs", "logdev=/dev/sdb", "has logdev: "),
        ("ext4", "loop", "has loop: "),
        ("ext4", "noatimes", "did you mean noatime?"),
        ("ext4", "compress=zstd", "compress"),
        ("ext4", "rw, noatime", "' noatime'"),
        ("ext4", "", ""),
        ("ext4", "rw,", "''"),
        ("ext4", "rw\n", "'rw\\n'"),
        ("ext4", "rw,x-a=b #c", "x-a=b #c"),
        ("xfs", "allocsize", "without a value"),
        ("xfs", "nouuid=1", "does not take"),
        ("swap", "noatime", "noatime"),
        ("ext4", "x-systemd.makefs", "has x-systemd.makefs: "),
        ("ext4", "x-systemd.requires=/dev/sdb", "x-systemd.requires"),
        ("ext4", "x-systemd.requires=/proc/../dev/sdb", "x-systemd.requires"),
        ("ext4", "x-systemd.requires=/./dev/sdb", "x-systemd.requires"),
        ("ext4", "a" * 3000, "2048"),
    ],
)
def test_what_no_mount_may_have(fs_type: str, text: str, says: str) -> None:
    found = list(mistakes_in(fs_type, text))
    assert len(found) == (1 if text else 0), found
    assert says in "".join(found)


def test_a_dash_takes_an_option_away_be_it_one_that_may_be_added_or_not():
    for words in ("-nofail", "noatime,-discard", "-umask=0022", "-x-systemd.makefs", "-data"):
        assert list(mistakes_in("ext4", words)) == []
    for words in ("-", "-a b", "-a\nb", "--bind;x"):
        assert len(list(mistakes_in("ext4", words))) == 1
