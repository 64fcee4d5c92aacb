# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which options mounts may have: mount(8), ext4(5), xfs(5), btrfs(5), the kernel's f2fs.rst, swapon(8), systemd.mount(5)."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterator, Mapping

from .programs import OTHER_DEVICE
from .values import TRUTH, Kind, Listed, Value, alike, one_of, shown, whole, why_no_option, with_opposites
from .words import TAKE_AWAY

_LONGEST = 2048
_SWITCH = TRUTH.or_none()
_COUNT = whole(0, 2**31 - 1)
_ID = whole(0, 2**32 - 2)
_MASK = Value("a mask, such as 0022", r"[0-7]{1,4}")
_CONTEXT = Value("a context of SELinux, such as system_u:object_r:httpd_sys_content_t:s0", r"[A-Za-z0-9_.:-]{1,255}")
_NAME = Value("a name of a user or a group, or its number", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SPAN = Value("a span of time, such as 30s or 5min", r"[0-9]{1,10}(us|ms|s|sec|min|m|h|d|w)?|infinity")
_UNIT = Value(
    "a unit of systemd, such as network-online.target, or an absolute path that is no device",
    r"[A-Za-z0-9_][A-Za-z0-9:_.\\@-]{0,254}\.(automount|mount|path|scope|service|slice|socket|swap|target|timer)"
    r"|/(?!dev(/|$))(?!\.{1,2}(/|$))[A-Za-z0-9_+@.-]+(/(?!\.{1,2}(/|$))[A-Za-z0-9_+@.-]+)*/?",
)
_FREE = Value("text of letters, digits and _ . : / @ % + = -", r"[A-Za-z0-9_.:/@%+=-]{1,255}")
_CHARSET = Value("a character set, such as utf8 or iso8859-1", r"[a-z0-9-]{1,32}")
_FILE = Value("a file at the top of the file system, such as aquota.user", r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_OF_ALL: Mapping[str, t.Optional[Kind]] = {
    **alike(None, "defaults", "sw", "rw", "ro", "nofail", "_netdev", "owner", "group", "silent", "loud", "async", "sync", "dirsync"),
    **with_opposites(("auto", "user", "users", "exec", "suid", "dev", "atime", "diratime", "relatime", "strictatime", "lazytime")),
    **with_opposites(("iversion", "mand", "symfollow")),
    "nosymfollow": None,
    **alike(_CONTEXT, "context", "fscontext", "defcontext", "rootcontext"),
    "comment": _FREE,
    **alike(None, "shared", "private", "slave", "unbindable", "rshared", "rprivate", "rslave", "runbindable"),
    "X-mount.mkdir": Value("permissions, such as 0755", r"[0-7]{3,4}").or_none(),
    "X-mount.mode": Value("permissions, such as 0755", r"[0-7]{3,4}"),
    **alike(_NAME, "X-mount.owner", "X-mount.group"),
    **alike(
        _UNIT,
        *("x-systemd.requires", "x-systemd.wants", "x-systemd.before", "x-systemd.after", "x-systemd.wanted-by", "x-systemd.required-by"),
        *("x-systemd.requires-mounts-for", "x-systemd.wants-mounts-for"),
    ),
    **alike(_SPAN, "x-systemd.idle-timeout", "x-systemd.device-timeout", "x-systemd.mount-timeout"),
    **alike(None, "x-systemd.automount", "x-systemd.growfs", "x-systemd.rw-only", "x-systemd.pcrfs", "x-systemd.device-bound"),
    **alike(None, "x-initrd.mount", "x-gvfs-show", "x-gvfs-hide"),
}
_OF_SWAP: Mapping[str, t.Optional[Kind]] = {
    **alike(None, "defaults", "sw", "auto", "noauto", "nofail", "_netdev"),
    "pri": Value("a priority from -1 to 32767", r"-1|[0-9]{1,5}"),
    "discard": one_of("once", "pages").or_none(),
    "comment": _FREE,
    **{key: kind for key, kind in _OF_ALL.items() if key.startswith(("x-systemd.", "x-initrd"))},
}
_QUOTA: Mapping[str, t.Optional[Kind]] = alike(None, "quota", "noquota", "usrquota", "grpquota", "prjquota")
_OF_EXT: Mapping[str, t.Optional[Kind]] = {
    **with_opposites(("acl", "user_xattr", "grpid", "discard", "delalloc", "block_validity", "auto_da_alloc", "journal_checksum", "load")),
    **alike(None, "bsdgroups", "sysvgroups", "bsddf", "minixdf", "debug", "nouid32", "oldalloc", "orlov", "nocheck", "norecovery"),
    **alike(None, "journal_async_commit", "dioread_lock", "dioread_nolock", "noinit_itable", "i_version", "nombcache", "nobarrier"),
    **alike(None, "prefetch_block_bitmaps", "no_prefetch_block_bitmaps", "inlinecrypt", "warn_on_error", "nowarn_on_error"),
    "check": one_of("none"),
    **_QUOTA,
    "errors": one_of("continue", "remount-ro", "panic"),
    "data": one_of("journal", "ordered", "writeback"),
    "data_err": one_of("ignore", "abort"),
    "barrier": _SWITCH,
    "commit": _COUNT,
    **alike(_ID, "resuid", "resgid"),
    "sb": _COUNT,
    "jqfmt": one_of("vfsold", "vfsv0", "vfsv1"),
    **alike(_FILE, "usrjquota", "grpjquota"),
    **alike(_COUNT, "inode_readahead_blks", "stripe", "max_batch_time", "min_batch_time", "max_dir_size_kb", "mb_optimize_scan"),
    "journal_ioprio": whole(0, 7),
    "init_itable": _COUNT.or_none(),
    "dax": one_of("always", "never", "inode").or_none(),
}
_BYTES = Value("a size such as 65536, 64k or 1g", r"[0-9]{1,20}[kKmMgG]?")
_ALGORITHM = Value("zlib, lzo, zstd or no, with a level such as zstd:3", r"(zlib|zstd)(:[0-9]{1,2}|:-[0-9]{1,2})?|lzo|no|none")
_BY_TYPE: Mapping[str, Mapping[str, t.Optional[Kind]]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), _OF_EXT),
    "xfs": {
        **alike(_BYTES, "allocsize", "logbsize"),
        "logbufs": whole(2, 8),
        **alike(None, "attr2", "noattr2", "filestreams", "ikeep", "noikeep", "inode32", "inode64", "largeio", "nolargeio", "noalign"),
        **alike(None, "norecovery", "nouuid", "swalloc", "wsync", "discard", "nodiscard", "grpid", "bsdgroups", "nogrpid", "sysvgroups"),
        **_QUOTA,
        **alike(None, "uquota", "uqnoenforce", "gquota", "gqnoenforce", "pquota", "pqnoenforce", "qnoenforce", "barrier", "nobarrier"),
        **alike(_COUNT, "sunit", "swidth"),
        "dax": one_of("always", "never", "inode").or_none(),
        "lifetime": None,
        "nolifetime": None,
    },
    "btrfs": {
        **with_opposites(("acl", "autodefrag", "barrier", "datacow", "datasum", "enospc_debug", "flushoncommit", "treelog", "ssd")),
        **with_opposites(("ssd_spread", "user_subvol_rm_allowed", "inode_cache")),
        **alike(None, "clear_cache", "degraded", "nodiscard", "nospace_cache", "skip_balance", "rescan_uuid_tree", "usebackuproot"),
        **alike(None, "nologreplay", "norecovery", "recovery"),
        **alike(_ALGORITHM.or_none(), "compress", "compress-force"),
        "commit": _COUNT,
        "discard": one_of("sync", "async").or_none(),
        "fatal_errors": one_of("bug", "panic"),
        "max_inline": _BYTES,
        **alike(_COUNT, "metadata_ratio", "thread_pool"),
        "rescue": Listed(
            ("usebackuproot", "nologreplay", "ignorebadroots", "ibadroots", "ignoredatacsums", "idatacsums", "all"), separator=":"
        ),
        "space_cache": one_of("v1", "v2").or_none(),
        "subvol": Value("the path of a subvolume, such as @home", r"(?!/?dev/)/?[A-Za-z0-9@_+.-]+(/[A-Za-z0-9@_+.-]+)*"),
        "subvolid": _COUNT,
    },
    "f2fs": {
        **with_opposites(("heap", "user_xattr", "acl", "inline_xattr", "inline_data", "inline_dentry", "barrier", "extent_cache")),
        **alike(None, "disable_roll_forward", "norecovery", "discard", "nodiscard", "disable_ext_identify", "flush_merge", "noflush_merge"),
        **alike(None, "fastboot", "data_flush", "atgc", "gc_merge", "nogc_merge", "age_extent_cache", "compress_chksum", "compress_cache"),
        **alike(None, "checkpoint_merge", "nocheckpoint_merge", "inlinecrypt", "lazytime", "reserve_root", "test_dummy_encryption"),
        "background_gc": one_of("on", "off", "sync"),
        "active_logs": one_of("2", "4", "6"),
        "inline_xattr_size": whole(6, 900),
        **alike(_COUNT, "reserve_root", "reserve_node"),
        **alike(_ID, "resuid", "resgid"),
        "mode": one_of("adaptive", "lfs", "fragment:segment", "fragment:block"),
        **_QUOTA,
        **alike(_FILE, "usrjquota", "grpjquota", "prjjquota"),
        "jqfmt": one_of("vfsold", "vfsv0", "vfsv1"),
        "alloc_mode": one_of("default", "reuse"),
        "fsync_mode": one_of("posix", "strict", "nobarrier"),
        "checkpoint": Value("enable, disable, or disable:10%", r"enable|disable(:[0-9]{1,12}%?)?"),
        "compress_algorithm": Value("lzo, lz4, zstd or lzo-rle, with a level such as zstd:6", r"(lzo|lz4|zstd|lzo-rle)(:[0-9]{1,2})?"),
        "compress_log_size": whole(2, 8),
        **alike(
            Value("the ending of file names, such as log, or *", r"[A-Za-z0-9_]{1,8}|\*"), "compress_extension", "nocompress_extension"
        ),
        "compress_mode": one_of("fs", "user"),
        "discard_unit": one_of("block", "segment", "section"),
        "memory": one_of("normal", "low"),
        "errors": one_of("continue", "remount-ro", "panic"),
        "whint_mode": one_of("off", "user-based", "fs-based"),
    },
    "vfat": {
        **alike(_ID, "uid", "gid"),
        **alike(_MASK, "umask", "dmask", "fmask", "allow_utime"),
        "check": one_of("r", "n", "s", "relaxed", "normal", "strict"),
        "codepage": whole(1, 65535),
        "iocharset": _CHARSET,
        **alike(None, "debug", "discard", "flush", "quiet", "rodir", "showexec", "sys_immutable", "usefree", "uni_xlate", "nonumtail"),
        **alike(None, "dos1xfloppy", "dots", "nodots", "posix"),
        "errors": one_of("continue", "remount-ro", "panic"),
        "fat": one_of("12", "16", "32"),
        "nfs": one_of("stale_rw", "nostale_ro").or_none(),
        "tz": one_of("UTC"),
        "time_offset": Value("minutes from -1440 to 1440", r"-?[0-9]{1,4}"),
        "utf8": one_of("0", "1", "yes", "no", "true", "false").or_none(),
        "shortname": one_of("lower", "win95", "winnt", "mixed"),
    },
}
_FROM_A_FILE = "what is mounted is the device of the space, not a file; leave it out"
_OF_DEVICES = "the devices are those of the space; leave it out"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("journal_dev", "journal_path", "logdev", "rtdev"), OTHER_DEVICE),
    "device": _OF_DEVICES,
    **dict.fromkeys(("loop", "offset", "sizelimit", "encryption"), _FROM_A_FILE),
    **dict.fromkeys(("bind", "rbind", "move", "remount"), "a file system is mounted once, at mount; leave it out"),
    "abort": "that stops the file system; leave it out",
    **dict.fromkeys(("uhelper", "helper"), "nothing else unmounts it; leave it out"),
    "X-mount.subdir": "a part of a file system is mounted as a subvolume of Btrfs",
    "X-mount.idmap": "owners are those of the host; leave it out",
    "x-systemd.makefs": "file systems are made by disk_layout, not at a start; leave it out",
    "x-systemd.validatefs": "file systems are found by UUID; leave it out",
}
"""Options that mount or systemd know and that are not given here, with what to do instead."""
_REFUSED_STARTS = {"verity.": _OF_DEVICES, "x-systemd.": "it is none that systemd has for mounts of disks"}
_COMMENT = "x-"
_TAKEN_AWAY = r"[A-Za-z_][A-Za-z0-9_.:/@%+=-]{1,254}"


def known(fs_type: str) -> Mapping[str, t.Optional[Kind]]:
    """Return the options that mounts of a file system, or swap, may have, with their values; None for those that take none."""
    return _OF_SWAP if fs_type == "swap" else {**_OF_ALL, **_BY_TYPE[fs_type]}


def mistakes_in(fs_type: str, text: str) -> Iterator[str]:
    """Give what is wrong with the options of a mount, and what would be right; an empty text says nothing.

    Comments of other programs (`x-NAME`, `x-NAME=VALUE`) mean nothing to the kernel, and are taken. A word with a dash before it takes
    that option away from a line that has it, with any value where none is given, be it one that may be added here or not.
    """
    if not text:
        return
    if len(text) > _LONGEST:
        yield f"has more than {_LONGEST} characters"
        return
    options = known(fs_type)
    for word in text.split(","):
        if word.startswith(TAKE_AWAY):
            if re.fullmatch(_TAKEN_AWAY, word[len(TAKE_AWAY) :]) is None:
                yield f"has {shown(word)}; behind a dash there must be an option that is taken away, such as -nofail"
            continue
        key, equals, value = word.partition("=")
        start = next((start for start in _REFUSED_STARTS if key.startswith(start)), None)
        if key in options or key in REFUSED or not key.startswith((_COMMENT, *_REFUSED_STARTS)):
            says = why_no_option(options, REFUSED, key, value if equals else None)
        elif start is not None:
            says = f"has {shown(key)}: {_REFUSED_STARTS[start]}"
        else:
            wrong = _FREE.why_not(key) or (_FREE.why_not(value) if equals else None)
            says = f"has {shown(word)}, of which a part {wrong}" if wrong is not None else None
        if says is not None:
            yield says
