# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables, as the newest migration leaves them.

After the model of spec "Resource Providers - Base Models" (seed 002), with what its sketch lacks: real foreign keys, one row
for each (consumer, provider, class), amounts of 64 bits, the ratio in double precision, and a running sum beside each inventory.
Classes and traits are their own keys: a row can be read without a look-up table, and none can name what does not exist.
"""

from __future__ import annotations

import typing as t

from sqlalchemy import BigInteger, Column, Double, ForeignKey, ForeignKeyConstraint, Index, Integer, MetaData, String, Table

from ..world.names import LONGEST_NAME, LONGEST_PROVIDER_NAME

# Named constraints can be altered by later migrations on every engine, SQLite included.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# MariaDB would otherwise take Host1 and host1 for the same name.
_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
# SQLite numbers rows by itself only where the key is declared INTEGER.
_ROW_NUMBER = BigInteger().with_variant(Integer(), "sqlite")
_UUID = String(36)
_NAME = String(LONGEST_NAME)

topology = Table(
    "topology",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
    comment="One row, which every re-parenting writes first: two of them at once cannot make a loop",
    **_OPTIONS,
)

resource_classes = Table("resource_classes", metadata, Column("name", _NAME, primary_key=True), **_OPTIONS)

traits = Table("traits", metadata, Column("name", _NAME, primary_key=True), **_OPTIONS)

providers = Table(
    "resource_providers",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True),
    Column("uuid", _UUID, nullable=False, unique=True),
    Column("name", String(LONGEST_PROVIDER_NAME), nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("parent_id", _ROW_NUMBER, ForeignKey("resource_providers.id"), index=True),
    **_OPTIONS,
)

provider_traits = Table(
    "provider_traits",
    metadata,
    Column("provider_id", _ROW_NUMBER, ForeignKey("resource_providers.id"), primary_key=True),
    Column("trait", _NAME, ForeignKey("traits.name"), primary_key=True, index=True),
    **_OPTIONS,
)

provider_aggregates = Table(
    "provider_aggregates",
    metadata,
    Column("provider_id", _ROW_NUMBER, ForeignKey("resource_providers.id"), primary_key=True),
    Column("aggregate", _UUID, primary_key=True, index=True),
    **_OPTIONS,
)

inventories = Table(
    "inventories",
    metadata,
    Column("provider_id", _ROW_NUMBER, ForeignKey("resource_providers.id"), primary_key=True),
    Column("resource_class", _NAME, ForeignKey("resource_classes.name"), primary_key=True, index=True),
    Column("total", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("min_unit", BigInteger, nullable=False),
    Column("max_unit", BigInteger, nullable=False),
    Column("step_size", BigInteger, nullable=False),
    Column("allocation_ratio", Double, nullable=False),
    # The sum of the allocations, kept in their transaction, so that a claim need not add up thousands of rows.
    Column("used", BigInteger, nullable=False),
    **_OPTIONS,
)

consumers = Table(
    "consumers",
    metadata,
    Column("id", _ROW_NUMBER, primary_key=True),
    Column("uuid", _UUID, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
    Column("project", String(LONGEST_NAME), index=True),
    Column("user", String(LONGEST_NAME)),
    **_OPTIONS,
)

allocations = Table(
    "allocations",
    metadata,
    Column("consumer_id", _ROW_NUMBER, ForeignKey("consumers.id"), primary_key=True),
    Column("provider_id", _ROW_NUMBER, primary_key=True),
    Column("resource_class", _NAME, primary_key=True),
    Column("used", BigInteger, nullable=False),
    ForeignKeyConstraint(["provider_id", "resource_class"], ["inventories.provider_id", "inventories.resource_class"]),
    Index(None, "provider_id", "resource_class", "used"),
    **_OPTIONS,
)
