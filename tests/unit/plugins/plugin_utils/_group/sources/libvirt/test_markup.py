# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XML of hosts that could do harm."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Mistakes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.markup import (
    read_bytes,
    read_markup,
    text_at,
)

LAUGHS = "".join(f"<!ENTITY l{number} '{f'&l{number - 1};' * 10}'>" for number in range(1, 10))


def read(text):
    mistakes = Mistakes()
    return read_markup(text, "domain", "place", mistakes), [mistake.says for mistake in mistakes.found()]


@pytest.mark.parametrize(
    "text",
    [
        f"<!DOCTYPE domain [<!ENTITY l0 'ha'>{LAUGHS}]><domain><name>&l9;</name></domain>",
        "<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><domain><name>&x;</name></domain>",
        "<!DOCTYPE domain SYSTEM 'http://192.0.2.1/x.dtd'><domain/>",
    ],
    ids=["laughs", "a file", "a server"],
)
def test_a_document_type_is_refused(text):
    element, says = read(text)
    assert says == ["has a document type, which XML of libvirt does not"]
    assert not list(element)


@pytest.mark.parametrize(
    "text", ["", "x", "<domain>", "<a/><b/>", "<domain>&x;</domain>", "<domain a='\0'/>", "<pool/>", "<domain></doman>"]
)
def test_what_is_no_domain_is_refused(text):
    element, says = read(text)
    assert element.tag == "domain"
    assert len(says) == 1


def test_depth_is_no_danger():
    depth = 100_000
    element, says = read(f"<domain>{'<a>' * depth}{'</a>' * depth}</domain>")
    assert not says
    assert text_at(element, "name") == ""


@pytest.mark.parametrize(
    ("number", "unit", "size"),
    [
        *(("1", "", 1024), ("1", "KiB", 1024), ("1", "k", 1024), ("2", "MiB", 2 << 20), ("2", "M", 2 << 20), ("1", "G", 1 << 30)),
        *(("5", "bytes", 5), ("5", "b", 5), ("1", "KB", 1000), ("1", "GB", 10**9), ("x", "KiB", 0), ("-1", "KiB", 0), ("9" * 30, "", 0)),
    ],
)
def test_units(number, unit, size):
    assert read_bytes(number, unit) == size
