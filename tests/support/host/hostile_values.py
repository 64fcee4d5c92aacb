# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that no key of a schema of names and sizes takes: texts that would be another word, line or file, and values of other kinds."""

from __future__ import annotations

import typing as t

LINES = ("a\n", "\na", "/srv\n/x y ext4 defaults 0 0", "a\rb", "a\tb", "a\0b", "a\x1b[2Jb", "a\u2028b", "\u202egpj.exe", "a\u2066b", "\x7f")
OPTIONS = ("-", "--help", "-f", "--", "-rf /")
PATHS = ("..", "../../etc/shadow", "/../etc/shadow", "/dev/../etc/shadow", "/srv/../../etc", "./a")
WORDS = ("a b", " ", '"', "'", '"; reboot #', "$(reboot)", "`reboot`", "a;b", "a|b", "a&b", "a*", "a\\", "{a}", "<a>", "#a")
LONG = ("x" * 300, "/" + "x" * 300, "/dev/" + "x" * 300, "ä" * 300)
OTHER_KINDS: tuple[t.Any, ...] = ([], ["a"], {}, {"a": "b"}, 1.5, float("nan"), float("inf"), True, False, 0, -1, 10**40, [[]], [None])
TEXTS = (*LINES, *OPTIONS, *LONG)
"""What no text is: these and other kinds are refused by keys with text for people as well; names refuse PATHS and WORDS, too."""
