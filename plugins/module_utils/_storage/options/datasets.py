# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which properties a ZFS pool's datasets may have: zfsprops(7)."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .values import Kind, Value, alike, one_of, whole

_SWITCH = one_of("on", "off")
_SIZE = Value("a size such as 16K or 1G, or none", r"none|[0-9]{1,20}(\.[0-9]{1,3})?[KMGTPEkmgtpe]?([iI]?[bB])?")
_COUNT = Value("a number, or none", r"none|[0-9]{1,20}")
_CONTEXT = Value("a context of SELinux, or none", r"[A-Za-z0-9_.:-]{1,255}")
_SHARE = Value(
    "on, off, or options of exportfs or smb without blanks, such as rw=@10.0.0.0/8,no_root_squash", r"[A-Za-z0-9@.,:=/_*-]{1,512}"
)

PROPERTIES: Mapping[str, Kind] = {
    **t.cast(
        "dict[str, Kind]",
        {
            "aclinherit": one_of("discard", "noallow", "restricted", "passthrough", "passthrough-x"),
            "aclmode": one_of("discard", "groupmask", "passthrough", "restricted"),
            "acltype": one_of("off", "noacl", "nfsv4", "posix", "posixacl"),
            **alike(
                _SWITCH, "atime", "devices", "exec", "nbmand", "overlay", "readonly", "relatime", "setuid", "vscan", "zoned", "utf8only"
            ),
            **alike(_SWITCH, "longname"),
            "canmount": one_of("on", "off", "noauto"),
            "casesensitivity": one_of("sensitive", "insensitive", "mixed"),
            "checksum": one_of("on", "off", "fletcher2", "fletcher4", "sha256", "noparity", "sha512", "skein", "edonr", "blake3"),
            "compression": Value(
                "on, off, lz4, lzjb, zle, gzip, gzip-1 to gzip-9, zstd, zstd-1 to zstd-19, or zstd-fast",
                r"on|off|lzjb|lz4|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-[0-9]{1,4})?",
            ),
            "copies": whole(1, 3),
            "dedup": Value(
                "on, off, verify, or a checksum such as sha256, with ,verify behind it",
                r"on|off|verify|(sha256|sha512|skein|blake3)(,verify)?|edonr,verify",
            ),
            "direct": one_of("disabled", "standard", "always"),
            "dnodesize": one_of("legacy", "auto", "1k", "2k", "4k", "8k", "16k"),
            **alike(_COUNT, "filesystem_limit", "snapshot_limit"),
            "logbias": one_of("latency", "throughput"),
            "mlslabel": Value("none or a label", r"[A-Za-z0-9_:.-]{1,255}"),
            "normalization": one_of("none", "formC", "formD", "formKC", "formKD"),
            "prefetch": one_of("none", "metadata", "all"),
            **alike(one_of("all", "none", "metadata"), "primarycache", "secondarycache"),
            "recordsize": _SIZE,
            "redundant_metadata": one_of("all", "most", "some", "none"),
            **alike(_SIZE, "refquota", "refreservation", "special_small_blocks"),
            **alike(_SHARE, "sharenfs", "sharesmb"),
            "snapdev": one_of("hidden", "visible"),
            "snapdir": one_of("disabled", "hidden", "visible"),
            "sync": one_of("standard", "always", "disabled"),
            "version": Value("current or a version", r"current|[1-9]"),
            "xattr": one_of("on", "off", "sa", "dir"),
            **alike(_CONTEXT, "context", "fscontext", "defcontext", "rootcontext"),
        },
    )
}
OF_POOLS = frozenset(
    {
        *("altroot", "ashift", "autoexpand", "autoreplace", "autotrim", "bcloneratio", "bootfs", "cachefile", "comment", "compatibility"),
        *("delegation", "failmode", "listsnapshots", "multihost"),
    }
)
"""Properties of pools, not of datasets."""
