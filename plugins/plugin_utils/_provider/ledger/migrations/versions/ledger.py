# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's first tables.

A migration stays as it was released; tables.py says what the newest one leaves. MariaDB commits each statement by itself, so
every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "ledger"
down_revision = None
branch_labels = None
depends_on = None

_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin", "if_not_exists": True}
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_UUID = sa.String(36)
_NAME = sa.String(255)


def upgrade() -> None:
    """Make the tables and the one row of the topology guard."""
    _create_guard()
    for table in ("resource_classes", "traits"):
        alembic_op.create_table(
            table, sa.Column("name", _NAME, nullable=False), sa.PrimaryKeyConstraint("name", name=f"pk_{table}"), **_OPTIONS
        )
    _create_providers()
    _create_sets()
    _create_inventories()
    _create_consumers()
    _create_allocations()


def _create_guard() -> None:
    alembic_op.create_table(
        "topology",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_topology"),
        comment="One row, which every re-parenting writes first: two of them at once cannot make a loop",
        **_OPTIONS,
    )
    alembic_op.execute(
        "INSERT INTO topology (id, generation) SELECT 1, 0 FROM (SELECT 1) AS once WHERE NOT EXISTS (SELECT id FROM topology)"
    )


def _create_providers() -> None:
    alembic_op.create_table(
        "resource_providers",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uuid", _UUID, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("parent_id", _NUMBER),
        sa.PrimaryKeyConstraint("id", name="pk_resource_providers"),
        sa.UniqueConstraint("uuid", name="uq_resource_providers_uuid"),
        sa.UniqueConstraint("name", name="uq_resource_providers_name"),
        sa.ForeignKeyConstraint(["parent_id"], ["resource_providers.id"], name="fk_resource_providers_parent_id"),
        **_OPTIONS,
    )
    _create_index("resource_providers", "parent_id")


def _create_sets() -> None:
    alembic_op.create_table(
        "provider_traits",
        sa.Column("provider_id", _NUMBER, nullable=False),
        sa.Column("trait", _NAME, nullable=False),
        sa.PrimaryKeyConstraint("provider_id", "trait", name="pk_provider_traits"),
        sa.ForeignKeyConstraint(["provider_id"], ["resource_providers.id"], name="fk_provider_traits_provider_id"),
        sa.ForeignKeyConstraint(["trait"], ["traits.name"], name="fk_provider_traits_trait"),
        **_OPTIONS,
    )
    _create_index("provider_traits", "trait")
    alembic_op.create_table(
        "provider_aggregates",
        sa.Column("provider_id", _NUMBER, nullable=False),
        sa.Column("aggregate", _UUID, nullable=False),
        sa.PrimaryKeyConstraint("provider_id", "aggregate", name="pk_provider_aggregates"),
        sa.ForeignKeyConstraint(["provider_id"], ["resource_providers.id"], name="fk_provider_aggregates_provider_id"),
        **_OPTIONS,
    )
    _create_index("provider_aggregates", "aggregate")


def _create_inventories() -> None:
    amounts = ("total", "reserved", "min_unit", "max_unit", "step_size")
    alembic_op.create_table(
        "inventories",
        sa.Column("provider_id", _NUMBER, nullable=False),
        sa.Column("resource_class", _NAME, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in amounts),
        sa.Column("allocation_ratio", sa.Double, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("provider_id", "resource_class", name="pk_inventories"),
        sa.ForeignKeyConstraint(["provider_id"], ["resource_providers.id"], name="fk_inventories_provider_id"),
        sa.ForeignKeyConstraint(["resource_class"], ["resource_classes.name"], name="fk_inventories_resource_class"),
        **_OPTIONS,
    )
    _create_index("inventories", "resource_class")


def _create_consumers() -> None:
    alembic_op.create_table(
        "consumers",
        sa.Column("id", _NUMBER, nullable=False),
        sa.Column("uuid", _UUID, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("project", _NAME),
        sa.Column("user", _NAME),
        sa.PrimaryKeyConstraint("id", name="pk_consumers"),
        sa.UniqueConstraint("uuid", name="uq_consumers_uuid"),
        **_OPTIONS,
    )
    _create_index("consumers", "project")


def _create_allocations() -> None:
    alembic_op.create_table(
        "allocations",
        sa.Column("consumer_id", _NUMBER, nullable=False),
        sa.Column("provider_id", _NUMBER, nullable=False),
        sa.Column("resource_class", _NAME, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("consumer_id", "provider_id", "resource_class", name="pk_allocations"),
        sa.ForeignKeyConstraint(["consumer_id"], ["consumers.id"], name="fk_allocations_consumer_id"),
        sa.ForeignKeyConstraint(
            ["provider_id", "resource_class"],
            ["inventories.provider_id", "inventories.resource_class"],
            name="fk_allocations_provider_id_resource_class",
        ),
        **_OPTIONS,
    )
    _create_index("allocations", "provider_id", "resource_class", "used")


def _create_index(table: str, *columns: str) -> None:
    # MySQL has no CREATE INDEX IF NOT EXISTS, so what an interrupted run left is looked up.
    name = f"ix_{table}_{'_'.join(columns)}"
    if name not in {index["name"] for index in sa.inspect(alembic_op.get_bind()).get_indexes(table)}:
        alembic_op.create_index(name, table, list(columns))
