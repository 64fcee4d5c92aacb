# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names are matched as a whole: nothing may follow one that is sound, and nothing may come before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import names

GUID = "0fc63daf-8483-4772-8e79-3d69d8477de4"
KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "device": ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", names.why_no_device),
    "mount": ("/srv/data", names.why_no_mount),
    "file": ("/etc/keys/data.key", names.why_no_file),
    "volume": ("data", names.why_no_lvm_name),
    "mapping": ("data-crypt", names.why_no_mapping),
    "array": ("/dev/md/data", names.why_no_array),
    "old array": ("/dev/md0", names.why_no_array),
    "GUID": (GUID, lambda text: names.why_no_uuid("ext4", text)),
    "serial number": ("1A2B-3C4D", lambda text: names.why_no_uuid("vfat", text)),
    "label": ("data", lambda text: names.why_no_label("ext4", text, 16)),
    "text": ("data", names.why_no_text),
}
AFTER = ["\n", "\nb", "\x00", "\x1b[2J", "\u202e", "\u2028", "\r"]
AFTER_WORDS = [" b", ";b", "$(b)", "`b`", "\\", '"', "'", "|", "&", "é"]
WORDS = {"volume", "mapping", "array", "old array", "GUID", "serial number"}
"""Kinds that are words of commands and configurations, and have letters, digits and a few marks only."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_name_is_taken(kind: str) -> None:
    sound, why = KINDS[kind]
    assert why(sound) is None


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_follows_a_name(kind: str) -> None:
    sound, why = KINDS[kind]
    wrong = [sound + after for after in (*AFTER, *(AFTER_WORDS if kind in WORDS else ())) if why(sound + after) is None]
    assert wrong == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_comes_before_a_name(kind: str) -> None:
    sound, why = KINDS[kind]
    before = ["-", "--", "\n", "\x00", "\u202e", *([" ", ";", "$"] if kind in WORDS else [])]
    assert [text for text in before if why(text + sound) is None] == []
    assert why("") is not None or kind in {"label", "text"}
