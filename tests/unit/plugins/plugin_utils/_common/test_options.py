# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ansible's validation would end at with a traceback is refused before, with its place."""

from __future__ import annotations

import math

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.options import refuse_unreadable

INNER = {"rate": {"type": "float"}, "count": {"type": "int"}}
SPEC = {
    "count": {"type": "int"},
    "one": {"type": "dict", "options": INNER},
    "many": {"type": "list", "elements": "dict", "options": INNER},
    "free": {"type": "dict"},
    "file": {"type": "path"},
}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"count": math.inf}, "count: is inf; must be a number"),
        ({"count": math.nan}, "count: is nan; must be a number"),
        ({"one": 5}, "one: is 5; must be a mapping"),
        ({"one": [None]}, "one: is a list; must be a mapping"),
        ({"one": {"rate": 10**400}}, "one.rate: is a huge number; must be a number"),
        ({"one": {1: 2}}, "one.1: is not an option; there are rate, count"),
        ({"many": [{}, False, {"count": -math.inf}]}, "- many[1]: is False; must be a mapping\n- many[2].count: is -inf; must be a number"),
        ({"many": 0.5}, "many: is 0.5; must be a mapping"),
        ({"count": "Infinity"}, "count: is 'Infinity'; must be a number"),
        ({"one": {"rate": "1e999"}}, "one.rate: is '1e999'; must be a number"),
        ({"count": "1" * 5000}, "count: is a long text; must be a number"),
        ({"file": ["x"]}, "file: is a list; must be the path of a file"),
        ({"file": "x" * 300}, "with at most 4095 bytes, and at most 255 in each name"),
        ({"file": "x/" * 3000}, "with at most 4095 bytes, and at most 255 in each name"),
        ({"file": "\ud800"}, "must be the path of a file; it is no text"),
        ({"file": "a\0b"}, "file: is 'a\\x00b'; must be the path of a file, in which there is no character 0"),
    ],
)
def test_what_is_refused(options, says):
    with pytest.raises(InputError) as caught:
        refuse_unreadable(options, SPEC)
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"count": 1, "other": 5},
        {"count": "many", "one": None},
        {"one": "rate=1", "many": [{"rate": 0.5}]},
        {"free": {1: math.inf}, "file": "a b"},
    ],
)
def test_what_is_left_to_ansible(options):
    refuse_unreadable(options, SPEC)
