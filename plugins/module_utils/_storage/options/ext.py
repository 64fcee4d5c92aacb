# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What mkfs.ext2, mkfs.ext3 and mkfs.ext4 may be given: mke2fs(8), ext4(5)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .programs import DRY_RUN, FORCE, LABEL, NO_FILES, OTHER_DEVICE, QUIET, UUID, WHOLE_DEVICE, Program, Refused
from .values import OWNER, POWER_SIZE, TRUTH, Keys, Kind, Listed, Value, alike, decimal, one_of, size, whole

_FEATURES = Listed(
    (
        *("64bit", "bigalloc", "casefold", "dir_index", "dir_nlink", "ea_inode", "encrypt", "ext_attr", "extent", "extents", "extra_isize"),
        *("fast_commit", "filetype", "flex_bg", "has_journal", "huge_file", "inline_data", "large_dir", "large_file", "metadata_csum"),
        *("metadata_csum_seed", "meta_bg", "mmp", "none", "orphan_file", "project", "quota", "resize_inode", "sparse_super"),
        *("sparse_super2", "stable_inodes", "uninit_bg", "verity"),
    ),
    off="^",
    refused={"journal_dev": f"that is a journal for another file system; {OTHER_DEVICE}"},
)
_EXTENDED = Keys(
    {
        **alike(TRUTH.or_none(), "lazy_itable_init", "lazy_journal_init", "assume_storage_prezeroed", "packed_meta_blocks"),
        **alike(None, "discard", "nodiscard", "test_fs"),
        "stride": whole(1, 2**31),
        **alike(whole(1, 2**31), "stripe_width", "stripe-width"),
        "resize": POWER_SIZE,
        "num_backup_sb": whole(0, 2),
        "mmp_update_interval": whole(0, 300),
        "root_owner": OWNER.or_none(),
        "root_perms": Value("permissions, such as 0755", r"[0-7]{3,4}"),
        "orphan_file_size": POWER_SIZE,
        "quotatype": Listed(("usrquota", "grpquota", "prjquota"), separator=":"),
        "encoding": one_of("utf8", "utf8-12.1").or_none(),
        "encoding_flags": one_of("strict", "nostrict"),
    },
    refused={"offset": WHOLE_DEVICE, "no_copy_xattrs": NO_FILES, "android_sparse": "that makes a file", "hash_seed": UUID},
)
_JOURNAL = Keys(
    {"size": whole(1, 10_000_000), "fast_commit_size": whole(1, 10_000_000), "location": size("kKmMgGtT", "512M")},
    refused={"device": OTHER_DEVICE},
)
_FLAGS: Mapping[str, t.Optional[Kind]] = {
    "-b": POWER_SIZE,
    "-C": POWER_SIZE,
    "-E": _EXTENDED,
    "-e": one_of("continue", "remount-ro", "panic"),
    "-g": whole(256, 2**20),
    "-G": whole(1, 2**31),
    "-I": whole(128, 2**16),
    "-i": POWER_SIZE,
    "-j": None,
    "-J": _JOURNAL,
    "-m": decimal(0, 50),
    "-N": whole(1, 2**32 - 1),
    "-O": _FEATURES,
    "-T": Value("usage types of mke2fs.conf, such as largefile or news", r"[a-z][a-z0-9_.]{0,31}(,[a-z][a-z0-9_.]{0,31}){0,7}"),
}
_REFUSED = {
    "-c": Refused("a check for bad blocks takes hours; run badblocks before"),
    "-D": Refused("that only slows it down"),
    "-d": Refused(NO_FILES, with_value=True),
    "-F": Refused(FORCE),
    "-L": Refused(LABEL, with_value=True),
    "-l": Refused(NO_FILES, with_value=True),
    "-M": Refused("the mount point is mount", with_value=True),
    "-n": Refused(DRY_RUN),
    "-o": Refused("file systems are made for Linux", with_value=True),
    "-q": Refused(QUIET),
    "-R": Refused("it is -E today", with_value=True),
    "-r": Refused("kernels mount revision 1, the default", with_value=True),
    "-S": Refused("that repairs a file system, with losses"),
    "-t": Refused("the kind is fs_type", with_value=True),
    "-U": Refused(UUID, with_value=True),
    "-V": Refused(DRY_RUN),
    "-v": Refused(QUIET),
    "-z": Refused("no undo file is written", with_value=True),
}


def program(name: str) -> Program:
    """Return the options of mkfs.ext2, mkfs.ext3 or mkfs.ext4."""
    return Program(f"mkfs.{name}", _FLAGS, _REFUSED)
