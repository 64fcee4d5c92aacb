# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The short way to SQLite: the same rows, numbers and errors as by SQLAlchemy."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.database import memory_engine
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_guarded, read_holdings, read_numbers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import is_lost_race
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.statements import Statement, fill, padded, slots
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer
from sqlalchemy import Column, Integer, MetaData, String, Table, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

BOXES = Table("boxes", MetaData(), Column("id", Integer, primary_key=True), Column("name", String(9), unique=True), Column("size", Integer))
MAKE = Statement(insert(BOXES).values(name=bindparam("called"), size=bindparam("of")))
GROW = Statement(update(BOXES).where(BOXES.c.name == bindparam("called")).values(size=BOXES.c.size + 1))
DROP = Statement(delete(BOXES).where(BOXES.c.size < bindparam("least")))
MISSING = Statement(select(BOXES.alias("crates").c.id).select_from(Table("crates", MetaData(), Column("id", Integer))))


@pytest.fixture
def connection():
    with memory_engine().begin() as opened:
        BOXES.metadata.create_all(opened)
        yield opened


def find(connection, names):
    chosen = (
        select(BOXES.c.name, BOXES.c.size).where(BOXES.c.name.in_(slots(BOXES.c.name, "name", padded(len(names))))).order_by(BOXES.c.id)
    )
    short = [tuple(row) for row in Statement(chosen).rows(connection, fill("name", names))]
    assert short == [tuple(row) for row in connection.execute(chosen, fill("name", names))]
    return short


def test_rows_are_made_changed_found_and_dropped(connection):
    assert [MAKE.add(connection, {"called": name, "of": size}) for name, size in (("a", 1), ("b", None))] == [1, 2]
    MAKE.repeat(connection, [{"called": name, "of": 5} for name in "cde"])
    MAKE.repeat(connection, [])
    assert GROW.change(connection, {"called": "a"}) == 1
    assert GROW.change(connection, {"called": "z"}) == 0
    assert find(connection, ["a", "b", "d"]) == [("a", 2), ("b", None), ("d", 5)]
    assert DROP.change(connection, {"least": 5}) == 1
    assert find(connection, ["a", "c", "e", "'; DROP TABLE boxes"]) == [("c", 5), ("e", 5)]


def test_values_are_taken_back_with_the_transaction():
    engine = memory_engine()
    with engine.begin() as connection:
        BOXES.metadata.create_all(connection)
    with engine.begin() as connection:
        MAKE.add(connection, {"called": "a", "of": 1})
        connection.get_transaction().rollback()
    with engine.begin() as connection:
        assert find(connection, ["a"]) == []


@pytest.mark.parametrize("again", [lambda c: MAKE.add(c, {"called": "a", "of": 2}), lambda c: MAKE.repeat(c, [{"called": "a", "of": 2}])])
def test_a_second_key_is_a_lost_race(connection, again):
    MAKE.add(connection, {"called": "a", "of": 1})
    with pytest.raises(IntegrityError) as caught:
        again(connection)
    assert is_lost_race(caught.value)


def test_other_errors_are_those_of_the_toolkit(connection):
    with pytest.raises(OperationalError, match="no such table") as caught:
        MISSING.rows(connection, {})
    assert not is_lost_race(caught.value)


@pytest.mark.parametrize(("count", "slots_of_it"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (4096, 4096)])
def test_lists_are_padded_with_their_last_value(count, slots_of_it):
    filled = fill("n", list(range(count)))
    assert len(filled) == padded(count) == slots_of_it
    assert list(filled.values()) == [*range(count), *[count - 1] * (slots_of_it - count)]


@pytest.mark.parametrize("count", [3, 4097])
def test_long_lists_find_what_is_there_once(bench, count):
    bench.put({"name": "p0", "inventories": {"VCPU": {"total": 8}}}, {"name": "p1"})
    bench.claim(("c0", {"p0": {"VCPU": 3}}))
    names = [f"p{position}" for position in range(count)]
    numbers = bench.ledger.read(lambda connection: read_numbers(connection, names))
    assert numbers.keys() == {"p0", "p1"}
    holdings = bench.ledger.read(lambda connection: read_holdings(connection, [consumer(f"c{position}") for position in range(count)]))
    assert {uuid: dict(holding.amounts) for uuid, holding in holdings.items()} == {consumer("c0"): {(numbers["p0"][0], "VCPU"): 3}}
    guarded = bench.ledger.read(lambda connection: read_guarded(connection, range(1, count + 1)))
    assert guarded.generations.keys() == {number for number, _uuid in numbers.values()}
    assert [stock.used for stock in guarded.stocks.values()] == [3]
