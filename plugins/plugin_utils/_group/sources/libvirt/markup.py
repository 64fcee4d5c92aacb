# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XML of hosts, read without what a document can bring along: no document type, so no entity of its own, and no file that it names."""

from __future__ import annotations

import contextlib
import typing as t
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from .....module_utils._data.errors import Mistakes
from .....module_utils._data.units import MIB

_LARGEST = 2**53
"""Beyond it numbers are no longer exact, and nothing is that large."""
_DIGITS = 20
_UNITS = {"": 1024, "b": 1, "bytes": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
"""Bytes of the units of libvirt that do not follow from `k`, `M`, `G`, `T`, `P`."""
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


class _Refused(Exception):
    """A document has a document type."""


def read_markup(text: str, root: str, place: str, mistakes: Mistakes) -> Element:
    """Return the root element of a document, which has the name `root`; an empty one where there is a mistake."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
        element = builder.close()
    except _Refused:
        mistakes.add(place, "has a document type, which XML of libvirt does not")
    except (expat.ExpatError, ParseError, ValueError, AssertionError) as error:
        mistakes.add(place, f"is no XML: {error}")
    else:
        if element.tag == root:
            return element
        mistakes.add(place, f"is XML of a <{element.tag[:50]}>; must be of a <{root}>")
    return Element(root)


def _refuse(*_declared: t.Any) -> t.NoReturn:
    raise _Refused


def text_at(element: Element, path: str) -> str:
    """Return the text of the first element at a path, empty where there is none."""
    return element.findtext(path) or ""


def read_whole(text: str) -> int | None:
    """Return a whole number, None of anything else."""
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) < _DIGITS and int(digits) <= _LARGEST:
        return int(digits)
    return None


def bytes_at(element: Element, path: str) -> int:
    """Return the bytes that an element gives, KiB where it names no unit; 0 where it gives none."""
    found = element.find(path)
    return 0 if found is None else read_bytes(found.text or "", found.get("unit", ""))


def read_bytes(number: str, unit: str) -> int:
    """Return the bytes of a number with a unit of libvirt, 0 for what is no number."""
    return min((read_whole(number) or 0) * _factor(unit), _LARGEST)


def _factor(unit: str) -> int:
    if unit in _UNITS:
        return _UNITS[unit]
    with contextlib.suppress(KeyError):
        return 1024 ** _POWERS[unit[:1]]
    return 1


def in_mib(size: int) -> int:
    """Return bytes as whole MiB, rounded up."""
    return -(-size // MIB)
