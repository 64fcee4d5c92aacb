# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import lsblk
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import DATA

HELP = (DATA / "lsblk-help.2.38.txt").read_text(encoding="utf-8")


def test_asks_only_for_the_columns_that_this_lsblk_lists():
    columns = lsblk.known_columns(HELP, HELP)

    assert {"KNAME", "TYPE", "MOUNTPOINTS", "START", "PTTYPE"} <= set(columns)
    assert "PARTN" not in columns
    assert set(columns) <= set(lsblk.COLUMNS)


@pytest.mark.parametrize(
    "help_text",
    ["", HELP.replace("--json", "--jason"), HELP.replace("        KNAME", "        OTHER")],
    ids=["no help", "no JSON", "no kernel names"],
)
def test_an_lsblk_that_cannot_say_what_is_needed_is_of_no_use(help_text):
    assert lsblk.known_columns(help_text, help_text) == ()


def test_newer_versions_list_their_columns_apart():
    help_text, listed = ((DATA / f"lsblk-{name}.2.41.txt").read_text(encoding="utf-8") for name in ("help", "list-columns"))

    assert not lsblk.lists_columns_apart(HELP)
    assert lsblk.lists_columns_apart(help_text)
    assert lsblk.known_columns(help_text, listed) == lsblk.COLUMNS
    assert lsblk.known_columns(help_text, help_text) == ()


def test_a_device_under_several_parents_is_one_row_with_all_of_them():
    rows = lsblk.parse_rows((DATA / "lsblk-O.vm.after-storage.json").read_text(encoding="utf-8"))

    assert rows["md127"]["parents"] == ("sda1", "sdb1")
    assert rows["dm-10"]["parents"] == ("dm-8",)
    assert rows["dm-5"]["parents"] == ("dm-1", "dm-2", "dm-3", "dm-4")
    assert rows["sda"]["parents"] == ()


def test_recorded_values_have_their_types():
    vdc = lsblk.parse_rows((DATA / "lsblk-O.vm.trixie.json").read_text(encoding="utf-8"))["vdc"]

    assert (vdc["size"], vdc["log-sec"], vdc["phy-sec"]) == (3221225472, 4096, 4096)
    assert vdc["rota"] is True
    assert vdc["rm"] is False
    assert vdc["tran"] == "virtio"
    assert vdc["wwn"] is None
    assert vdc["mountpoints"] == ()


def test_the_blanks_around_a_vendor_go():
    assert lsblk.parse_rows((DATA / "lsblk-O.vm.bookworm.json").read_text(encoding="utf-8"))["sda"]["vendor"] == "SEAGATE"


def test_strings_of_an_old_lsblk_are_read_as_what_they_mean():
    # util-linux 2.32 (RHEL 8) writes every value as a string, and has one mount point only
    text = json.dumps(
        {
            "blockdevices": [
                {
                    "name": "sda",
                    "kname": "sda",
                    "type": "disk",
                    "size": "1000204886016",
                    "rota": "1",
                    "ro": "0",
                    "log-sec": "512",
                    "mountpoint": None,
                    "children": [
                        {"name": "sda1", "kname": "sda1", "pkname": "sda", "type": "part", "size": "1048576", "mountpoint": "/boot"}
                    ],
                }
            ]
        }
    )

    rows = lsblk.parse_rows(text)

    assert (rows["sda"]["size"], rows["sda"]["rota"], rows["sda"]["ro"], rows["sda"]["log-sec"]) == (1000204886016, True, False, 512)
    assert rows["sda1"]["mountpoints"] == ("/boot",)
    assert rows["sda1"]["parents"] == ("sda",)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"other": 1}', '{"blockdevices": null}'])
def test_what_is_no_list_of_devices_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is json's or ours
        lsblk.parse_rows(text)


@pytest.mark.parametrize(
    ("value", "flag"), [("1", True), (True, True), (1, True), ("0", False), (False, False), ("", None), (None, None), ("x", None)]
)
def test_flags(value, flag):
    assert lsblk.to_flag(value) is flag


@pytest.mark.parametrize(("value", "integer"), [("12", 12), (12, 12), ("", None), (None, None), ("x", None)])
def test_integers(value, integer):
    assert lsblk.to_integer(value) == integer


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", "{}", '{"blockdevices": {}}', '{"blockdevices": [5]}', '{"blockdevices": [[]]}', '{"blockdevices": [{}]}'),
        *('{"blockdevices": [{"kname": {}}]}', '{"blockdevices": [{"kname": "a", "children": {"x": 1}}]}', "[" * 100_000),
        *('{"blockdevices": [{"kname": "a", "mountpoints": [{}]}]}', '{"blockdevices": [{"kname": "a", "pkname": []}]}'),
    ],
)
def test_an_lsblk_that_writes_something_else_is_one_error(text):
    with pytest.raises(ValueError, match=r"."):
        lsblk.parse_rows(text)


def test_columns_of_another_kind_are_as_good_as_missing():
    row = lsblk.parse_rows('{"blockdevices": [{"kname": "a", "size": Infinity, "model": {}, "serial": [1], "ro": {}}]}')["a"]
    assert (row["size"], row["model"], row["serial"], row["ro"]) == (None, None, None, None)
