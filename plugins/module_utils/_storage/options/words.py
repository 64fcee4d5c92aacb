# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options with commas between them, as fstab and crypttab have them: what a line has stays, what is wanted comes to it.

A word that is wanted takes the place of its opposite (`rw` that of `ro`, `nofail` that of `fail`) and of another value of the same key.
A word with a dash before it (`-nofail`, `-x-systemd.device-timeout`) takes that word, or that key with any value, away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

TAKE_AWAY = "-"
NOTHING = "defaults"

_ONE_OF = (frozenset({"ro", "rw"}), frozenset({"atime", "noatime", "relatime", "strictatime"}))
_OFTEN = frozenset(
    {
        *("device", "tcrypt-keyfile", "x-systemd.after", "x-systemd.before", "x-systemd.requires", "x-systemd.requires-mounts-for"),
        *("x-systemd.wanted-by", "x-systemd.required-by", "x-systemd.wants-mounts-for"),
    }
)
"""Keys that may stand on a line more than once."""

_OF_EVERY_FILESYSTEM = frozenset(
    {
        *(
            "auto",
            "noauto",
            "fail",
            "nofail",
            "_netdev",
            "ro",
            "rw",
            "atime",
            "noatime",
            "relatime",
            "strictatime",
            "diratime",
            "nodiratime",
        ),
        *("lazytime", "nolazytime", "dev", "nodev", "exec", "noexec", "suid", "nosuid", "user", "nouser", "users", "owner", "group"),
        *("sync", "async", "dirsync", "comment"),
    }
)


def words_of(options: str) -> list[str]:
    """Return the words of options, without the empty ones. A comma between quotation marks parts nothing (`context="a:b,c"`)."""
    words, quoted = [""], False
    for letter in options:
        quoted ^= letter == '"'
        if letter == "," and not quoted:
            words.append("")
        else:
            words[-1] += letter
    return [word for word in words if word]


def wanted_words(options: str) -> str:
    """Return options for a reader that knows no line to add them to: without the words that remove an option."""
    return ",".join(word for word in words_of(options) if not word.startswith(TAKE_AWAY)) or NOTHING


def says_where_from(origins: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Return a line for each mount point or container, with its options by where they come from (`word: origin`)."""
    lines = []
    for name, of_words in origins:
        by_origin: dict[str, list[str]] = {}
        for word, origin in of_words.items():
            by_origin.setdefault(str(origin), []).append(word)
        listed = "; ".join(f"{', '.join(words)} from {origin}" for origin, words in by_origin.items())
        lines += [f"{name}: {listed}\n"] if listed else []
    return "".join(lines)


def of_every_filesystem(words: Iterable[str]) -> list[str]:
    """Return the words that have a meaning whatever file system there is."""
    return [word for word in words if _key(word) in _OF_EVERY_FILESYSTEM or word.startswith(("x-", "X-"))]


def merged(present: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """Return the words of a line with those that are wanted; the same words in their order where all of them are there."""
    listed = list(wanted)
    gone = [word[len(TAKE_AWAY) :] for word in listed if word.startswith(TAKE_AWAY)]
    new = [word for word in listed if not word.startswith(TAKE_AWAY) and not (word == NOTHING and present) and not _is_among(word, gone)]
    words = [word for word in present if not _is_among(word, gone)]
    for word in dict.fromkeys(new):
        if word in words:
            continue
        at = next((at for at, other in enumerate(words) if _replaces(word, other)), None)
        words = [other for other in words if not _replaces(word, other)]
        words.insert(len(words) if at is None else at, word)
    return words


def _is_among(word: str, gone: Iterable[str]) -> bool:
    return any(other in (word, _key(word)) for other in gone)


def _replaces(word: str, other: str) -> bool:
    if word == other or any(word in group and other in group for group in _ONE_OF):
        return True
    if f"no{word}" == other or f"no{other}" == word:
        return True
    return _key(word) == _key(other) and _key(word) not in _OFTEN


def _key(word: str) -> str:
    return word.partition("=")[0]
