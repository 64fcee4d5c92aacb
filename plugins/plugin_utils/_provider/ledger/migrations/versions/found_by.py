# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the search for candidates looks up by indexes: roots of trees, sharing providers, capacities, and the most that one claim could get.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "found_by"
down_revision = "ledger"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_BELONGINGS = ("inventories", "provider_traits", "provider_aggregates")
_SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"
_LARGEST = 2**62
_INDEXES = {
    "ix_resource_providers_by_parent": ("resource_providers", ["parent_id", "name", "id"]),
    "ix_resource_providers_by_root": ("resource_providers", ["root_id"]),
    "ix_provider_traits_by_root": ("provider_traits", ["trait", "root_id", "provider_id"]),
    "ix_provider_traits_of_sharing": ("provider_traits", ["sharing", "trait", "root_id", "provider_id"]),
    "ix_provider_aggregates_by_root": ("provider_aggregates", ["aggregate", "root_id", "provider_id"]),
    "ix_provider_aggregates_of_root": ("provider_aggregates", ["root_id", "aggregate"]),
    "ix_provider_aggregates_of_sharing": ("provider_aggregates", ["sharing", "aggregate", "root_id", "provider_id"]),
    "ix_inventories_by_root": ("inventories", ["resource_class", "root_id", "most", "provider_id", "min_unit", "step_size"]),
    "ix_inventories_by_room": ("inventories", ["resource_class", "sharing", "most", "root_id", "provider_id"]),
}
_REPLACED = {
    "ix_resource_providers_parent_id": "resource_providers",
    "ix_provider_traits_trait": "provider_traits",
    "ix_provider_aggregates_aggregate": "provider_aggregates",
    "ix_inventories_resource_class": "inventories",
}


def upgrade() -> None:
    """Add the columns, fill them, then make the indexes and drop those that they replace."""
    _add("resource_providers", sa.Column("root_id", _NUMBER))
    for table in _BELONGINGS:
        _add(table, sa.Column("root_id", _NUMBER))
        _add(table, sa.Column("sharing", sa.SmallInteger, nullable=False, server_default="0"))
    _add("inventories", sa.Column("capacity", sa.BigInteger, nullable=False, server_default="0"))
    _fill_roots()
    _fill_sharing()
    _fill_capacities()
    _add("inventories", sa.Column("most", sa.BigInteger, _most()))
    if alembic_op.get_bind().dialect.name == "postgresql":
        alembic_op.alter_column("resource_providers", "name", existing_type=sa.String(200), type_=sa.String(200, collation="C"))
    for name, (table, columns) in _INDEXES.items():
        if name not in _indexes_of(table):
            alembic_op.create_index(name, table, columns)
    for name, table in _REPLACED.items():
        if name in _indexes_of(table):
            alembic_op.drop_index(name, table_name=table)


def _most() -> sa.Computed:
    # SQLite cannot add a column that is stored; an index on one that is not stores it all the same.
    if alembic_op.get_bind().dialect.name == "sqlite":
        return sa.Computed("min(capacity - used, max_unit)", persisted=False)
    return sa.Computed("LEAST(capacity - used, max_unit)", persisted=True)


def _fill_roots() -> None:
    connection = alembic_op.get_bind()
    providers = sa.table("resource_providers", sa.column("id"), sa.column("parent_id"), sa.column("root_id"))
    parents = {row.id: row.parent_id for row in connection.execute(sa.select(providers.c.id, providers.c.parent_id))}
    rows = [{"number": number, "root": _root_of(number, parents)} for number in parents]
    if rows:
        connection.execute(sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(root_id=sa.bindparam("root")), rows)
    for name in _BELONGINGS:
        table = sa.table(name, sa.column("provider_id"), sa.column("root_id"))
        root = sa.select(providers.c.root_id).where(providers.c.id == table.c.provider_id).scalar_subquery()
        connection.execute(sa.update(table).values(root_id=root))


def _root_of(number: int, parents: dict[int, int | None]) -> int:
    above = parents[number]
    while above is not None:
        number, above = above, parents[above]
    return number


def _fill_sharing() -> None:
    connection = alembic_op.get_bind()
    traits = sa.table("provider_traits", sa.column("provider_id"), sa.column("trait"))
    sharing = list(connection.scalars(sa.select(traits.c.provider_id).where(traits.c.trait == _SHARING_TRAIT)))
    for name in _BELONGINGS:
        table = sa.table(name, sa.column("provider_id"), sa.column("sharing"))
        if sharing:
            shares = sa.update(table).where(table.c.provider_id == sa.bindparam("number")).values(sharing=1)
            connection.execute(shares, [{"number": number} for number in sharing])


def _fill_capacities() -> None:
    """Fill in the capacity of each kind of inventory: fleets have few kinds, and every engine rounds in a way of its own."""
    connection = alembic_op.get_bind()
    table = sa.table("inventories", *map(sa.column, ("total", "reserved", "allocation_ratio", "capacity")))
    kinds = connection.execute(sa.select(table.c.total, table.c.reserved, table.c.allocation_ratio).distinct()).all()
    for total, reserved, ratio in kinds:
        of_kind = (table.c.total == total, table.c.reserved == reserved, table.c.allocation_ratio == ratio)
        connection.execute(sa.update(table).where(*of_kind).values(capacity=min(int((total - reserved) * ratio), _LARGEST)))


def _add(table: str, column: sa.Column[object]) -> None:
    if column.name not in {present["name"] for present in sa.inspect(alembic_op.get_bind()).get_columns(table)}:
        alembic_op.add_column(table, column)


def _indexes_of(table: str) -> set[str | None]:
    return {index["name"] for index in sa.inspect(alembic_op.get_bind()).get_indexes(table)}
