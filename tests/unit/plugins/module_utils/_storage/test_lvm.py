# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import lvm


@pytest.mark.parametrize(("size", "extents"), [(1024, 255), (5, 1), (4, 0), (1, 0), (0, 0), (4998, 1249)])
def test_extents_of_a_pv(size, extents):
    # pvcreate on 1024 MiB: the first extent at 1.00 MiB, 255 extents of 4 MiB.
    assert lvm.pv_extents(size) == extents


def test_dashes_are_doubled_in_names_of_nodes():
    assert lvm.mapper_node("vg-0", "a-b") == "/dev/mapper/vg--0-a--b"


def test_what_lvm_says_in_the_middle_of_its_report_is_no_part_of_it():
    report = [
        "  {",
        '      "report": [',
        '          { "pv": [ {"pv_name":"/dev/sda1", "vg_name":"os"} ] }',
        "          ,",
        '{"pv": []} ] }',
    ]
    said = [*report[:2], "  Retrying metadata scan.", *report[2:]]
    assert lvm.parse_report("\n".join(said), "pv", "pv_name") == [{"pv_name": "/dev/sda1", "vg_name": "os"}]
    assert lvm.parse_report("\n".join(report), "pv", "pv_name") == lvm.parse_report("".join(report), "pv", "pv_name")


@pytest.mark.parametrize("text", ["", "  Retrying metadata scan.\n", "{}", "[]", '{"report": {}}', '  No device found {"report": ['])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError, match="no LVM report|Expecting value|no mapping"):
        lvm.parse_report(text, "pv", "pv_name")


def test_a_row_that_lacks_a_column_is_refused():
    with pytest.raises(ValueError, match="vg_name"):
        lvm.parse_report('{"report": [{"pv": [{"pv_name": "/dev/sda1"}]}]}', "pv", "pv_name,vg_name")
