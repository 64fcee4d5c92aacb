# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Functions that expressions may call besides YAQL's own, each against the same said in YAQL alone."""

from __future__ import annotations

import random
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Memory
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql import Evaluator, ExpressionError

SYSTEM_DISK_IN_YAQL = """yaql=
  let(usable => $.disks.where(not $.get(removable, false) and not $.get(read_only, false)).toList()) ->
  let(fast => $usable.where($.type = ssd and $.size >= 32768).toList()) ->
  switch($fast.len() > 0 => $fast, true => $usable).orderBy($.size).take(1)
"""
SWAP_IN_YAQL = """yaql=
  let(ram => $.get(ram, 1024)) ->
  selectCase($ram <= 2048, $ram <= 8192, $ram <= 65536).switchCase($ram * 2, $ram, $ram / 2, 4096)
"""


def evaluated(text: str, facts: dict[str, t.Any]) -> t.Any:
    return Evaluator(facts, Memory())(text)


def ids(text: str, disks: list[dict[str, t.Any]]) -> list[str]:
    return [disk["id"] for disk in evaluated(text, {"disks": disks})]


def disk(name: str, kind: str, size: int, **more: t.Any) -> dict[str, t.Any]:
    return {"id": name, "type": kind, "size": size, **more}


def test_large_ssds_come_first_then_others_each_from_small_to_large() -> None:
    disks = [
        disk("stick", "ssd", 100_000, removable=True),
        disk("large", "ssd", 500_000),
        disk("rust", "hdd", 40_000),
        disk("cache", "ssd", 32_767),
        disk("least", "ssd", 32_768),
        disk("image", "hdd", 700, read_only=True),
        disk("plain", "ssd", 200_000, removable=False, read_only=False),
    ]
    assert ids("yaql=$.disks.orderForSystem()", disks) == ["least", "plain", "large", "cache", "rust", "stick", "image"]


def test_a_tie_is_decided_by_the_order_of_the_facts() -> None:
    disks = [disk("b", "hdd", 9), disk("a", "hdd", 9), disk("c", "hdd", 9)]
    assert ids("yaql=$.disks.orderForSystem()", disks) == ["b", "a", "c"]


@pytest.mark.parametrize("seed", range(30))
def test_the_first_is_what_yaql_would_choose(seed: int) -> None:
    rng = random.Random(seed)
    disks = [
        disk(f"d{at}", rng.choice(["ssd", "hdd"]), rng.choice([8192, 32768, 65536, 131072]), removable=rng.random() < 0.2)
        for at in range(rng.randint(1, 8))
    ]
    disks.append(disk("fixed", "hdd", 262144))
    assert ids("yaql=$.disks.orderForSystem().take(1)", disks) == ids(SYSTEM_DISK_IN_YAQL, disks)


def test_any_selection_of_disks_can_be_ordered() -> None:
    disks = [disk("a", "hdd", 9), disk("b", "hdd", 8), disk("c", "ssd", 7)]
    assert ids("yaql=$.disks.where($.type = hdd).orderForSystem().take(1)", disks) == ["b"]


@pytest.mark.parametrize("wrong", ["yaql=$.ram.orderForSystem()", "yaql=$.names.orderForSystem()", "yaql=$.sizeless.orderForSystem()"])
def test_what_is_no_list_of_disks_cannot_be_ordered(wrong: str) -> None:
    with pytest.raises(ExpressionError, match="failed"):
        evaluated(wrong, {"ram": 5, "names": ["sda"], "sizeless": [{"id": "a", "type": "ssd"}]})


MIXED = [
    disk("boot1", "ssd", 228_000, transport="sata"),
    disk("boot2", "ssd", 228_500, transport="sata"),
    *(disk(f"nvme{at}", "ssd", 3_000_000, transport="nvme") for at in range(2)),
    disk("large", "ssd", 6_000_000, transport="nvme"),
    *(disk(f"rust{at}", "hdd", 16_000_000, transport="sas") for at in range(4)),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("systemDisks()", "boot1 boot2"),
        ("systemPair()", "boot1 boot2"),
        ("withTwin()", "boot1 boot2"),
        ("skip(2).withTwin()", "nvme0 nvme1"),
        ("skip(4).withTwin()", "large"),
        ("dataDisks()", "nvme0 nvme1 large rust0 rust1 rust2 rust3"),
        ("dataDisks().prefer(nvme, hdd)", "nvme0 nvme1 large"),
        ("dataDisks().prefer(usb, hdd)", "rust0 rust1 rust2 rust3"),
        ("take(2).prefer(hdd)", "boot1 boot2"),
        ("dataDisks().prefer(ssd).alike()", "nvme0 nvme1"),
        ("sameKind()", "rust0 rust1 rust2 rust3"),
        ("dataDisks().prefer(ssd).sameKind()", "nvme0 nvme1 large"),
        ("arrayDisks(ssd)", "nvme0 nvme1"),
        ("arrayDisks(usb)", "rust0 rust1 rust2 rust3"),
        ("arrayDisks(usb, hdd)", "rust0 rust1 rust2 rust3"),
        ("take(2).arrayDisks(hdd)", "boot1 boot2"),
        ("take(5).skip(3).arrayDisks(ssd)", "large nvme1"),
        ("take(5).skip(3).systemPair()", "nvme1 large"),
        ("skip(4).take(2).arrayDisks(ssd)", "rust0"),
        ("skip(4).take(2).systemPair()", "large"),
        ("take(0).arrayDisks(ssd)", ""),
        ("take(0).systemPair()", ""),
    ],
)
def test_disks_are_chosen_by_what_they_are(query: str, expected: str) -> None:
    assert " ".join(ids(f"yaql=$.disks.{query}", MIXED)) == expected


def test_an_nvme_drive_that_is_called_so_is_an_ssd() -> None:
    disks = [disk("rust", "hdd", 40_000), disk("fast", "nvme", 400_000)]
    assert ids("yaql=$.disks.systemDisks()", disks) == ids("yaql=$.disks.prefer(ssd)", disks) == ["fast"]


@pytest.mark.parametrize("ram", [1, 512, 1024, 2047, 2048, 2049, 4096, 8191, 8192, 8193, 16384, 65535, 65536, 65537, 1048576])
def test_swap_is_what_yaql_would_compute(ram: int) -> None:
    assert evaluated("yaql=recommendedSwap($.ram)", {"ram": ram}) == evaluated(SWAP_IN_YAQL, {"ram": ram})


@pytest.mark.parametrize("ram", ["much", None, [1]])
def test_swap_wants_a_number(ram: object) -> None:
    with pytest.raises(ExpressionError, match="recommendedSwap"):
        evaluated("yaql=recommendedSwap($.ram)", {"ram": ram})
