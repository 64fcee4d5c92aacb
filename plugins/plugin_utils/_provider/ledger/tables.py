# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables, as the newest migration leaves them.

After the model of spec "Resource Providers - Base Models" (seed 002), with what its sketch lacks: real foreign keys, one row
for each (consumer, provider, class), amounts of 64 bits, the ratio in double precision, and a running sum in each inventory.
Classes and traits are their own keys: a row can be read without a look-up table, and none can name what does not exist.

Rows repeat derived columns that the search for candidates asks first, so that an index finds them: the root of each provider's
tree, whether the provider shares, the capacity and the most that one claim could get. Every change of the sources writes them, too.
"""

from __future__ import annotations

import typing as t

from ..._common.libraries import sa
from ..world.names import LONGEST_NAME, LONGEST_PROVIDER_NAME

# Named constraints can be altered by later migrations on every engine, SQLite included.
metadata = sa.MetaData(
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
_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_UUID = sa.String(36)
_NAME = sa.String(LONGEST_NAME)
# In the order of the code points everywhere, which is that of Python; the others sort so already.
_PROVIDER_NAME = sa.String(LONGEST_PROVIDER_NAME).with_variant(sa.String(LONGEST_PROVIDER_NAME, collation="C"), "postgresql")

# A row repeats two facts of its provider: the root of its tree as `root_id`, and `sharing`, 1 where it shares by aggregates,
# else 0.
_SHARING: dict[str, t.Any] = {"nullable": False, "server_default": "0"}

topology = sa.Table(
    "topology",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    # No provider that is gone, or has lost its name, had a higher generation; new ones begin above it.
    sa.Column("gone_generation", sa.BigInteger, nullable=False, server_default="0"),
    comment="One row, which every re-parenting writes first: two of them at once cannot make a loop",
    **_OPTIONS,
)

resource_classes = sa.Table("resource_classes", metadata, sa.Column("name", _NAME, primary_key=True), **_OPTIONS)

traits = sa.Table("traits", metadata, sa.Column("name", _NAME, primary_key=True), **_OPTIONS)

# Only those that have a name; an aggregate is else no more than a UUID that providers have in common.
aggregates = sa.Table(
    "aggregates",
    metadata,
    sa.Column("uuid", _UUID, primary_key=True),
    sa.Column("name", _PROVIDER_NAME, nullable=False, unique=True),
    **_OPTIONS,
)

providers = sa.Table(
    "resource_providers",
    metadata,
    sa.Column("id", _ROW_NUMBER, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("name", _PROVIDER_NAME, nullable=False, unique=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("parent_id", _ROW_NUMBER, sa.ForeignKey("resource_providers.id")),
    # Its own number at a root; nothing only while the provider is being made.
    sa.Column("root_id", _ROW_NUMBER),
    sa.Column("drain_reason", sa.String(LONGEST_NAME)),
    # Seconds since 1970: until when the provider itself is drained, and until when it gives nothing for its own drain or for those above.
    sa.Column("drained_until", sa.BigInteger),
    sa.Column("closed_until", sa.BigInteger),
    sa.Index("ix_resource_providers_by_parent", "parent_id", "name", "id"),
    sa.Index("ix_resource_providers_by_root", "root_id"),
    **_OPTIONS,
)

provider_traits = sa.Table(
    "provider_traits",
    metadata,
    sa.Column("provider_id", _ROW_NUMBER, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("trait", _NAME, sa.ForeignKey("traits.name"), primary_key=True),
    sa.Column("root_id", _ROW_NUMBER),
    sa.Column("sharing", sa.SmallInteger, **_SHARING),
    sa.Index("ix_provider_traits_by_root", "trait", "root_id", "provider_id"),
    sa.Index("ix_provider_traits_of_sharing", "sharing", "trait", "root_id", "provider_id"),
    **_OPTIONS,
)

provider_aggregates = sa.Table(
    "provider_aggregates",
    metadata,
    sa.Column("provider_id", _ROW_NUMBER, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("aggregate", _UUID, primary_key=True),
    sa.Column("root_id", _ROW_NUMBER),
    sa.Column("sharing", sa.SmallInteger, **_SHARING),
    sa.Index("ix_provider_aggregates_by_root", "aggregate", "root_id", "provider_id"),
    sa.Index("ix_provider_aggregates_of_root", "root_id", "aggregate"),
    sa.Index("ix_provider_aggregates_of_sharing", "sharing", "aggregate", "root_id", "provider_id"),
    **_OPTIONS,
)

inventories = sa.Table(
    "inventories",
    metadata,
    sa.Column("provider_id", _ROW_NUMBER, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("resource_class", _NAME, sa.ForeignKey("resource_classes.name"), primary_key=True),
    sa.Column("total", sa.BigInteger, nullable=False),
    sa.Column("reserved", sa.BigInteger, nullable=False),
    sa.Column("min_unit", sa.BigInteger, nullable=False),
    sa.Column("max_unit", sa.BigInteger, nullable=False),
    sa.Column("step_size", sa.BigInteger, nullable=False),
    sa.Column("allocation_ratio", sa.Double, nullable=False),
    # The sum of the allocations, kept in their transaction, so that a claim need not add up thousands of rows.
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("root_id", _ROW_NUMBER),
    sa.Column("sharing", sa.SmallInteger, **_SHARING),
    sa.Column("capacity", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("most", sa.BigInteger, sa.Computed("min(capacity - used, max_unit)")),
    sa.Index("ix_inventories_by_root", "resource_class", "root_id", "most", "provider_id", "min_unit", "step_size"),
    sa.Index("ix_inventories_by_room", "resource_class", "sharing", "most", "root_id", "provider_id"),
    **_OPTIONS,
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", _ROW_NUMBER, primary_key=True),
    sa.Column("uuid", _UUID, nullable=False, unique=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("project", sa.String(LONGEST_NAME), index=True),
    sa.Column("user", sa.String(LONGEST_NAME)),
    sa.Column("type", sa.String(LONGEST_NAME)),
    sa.Column("name", sa.String(LONGEST_PROVIDER_NAME)),
    # 1 where the consumer has given everything back; its row stays, so that its generation never goes back.
    sa.Column("released", sa.SmallInteger, nullable=False, server_default="0"),
    # Seconds since 1970 by the database's clock; a claim without an end has no `expires_at`.
    sa.Column("claimed_at", sa.BigInteger),
    sa.Column("expires_at", sa.BigInteger, index=True),
    # In a unique index, databases take no two NULLs for equal.
    sa.Column("scope", sa.String(LONGEST_NAME), sa.Computed("coalesce(project, '')")),
    sa.Index("ix_consumers_by_name", "name", "scope", unique=True),
    **_OPTIONS,
)

allocations = sa.Table(
    "allocations",
    metadata,
    sa.Column("consumer_id", _ROW_NUMBER, sa.ForeignKey("consumers.id"), primary_key=True),
    sa.Column("provider_id", _ROW_NUMBER, primary_key=True),
    sa.Column("resource_class", _NAME, primary_key=True),
    sa.Column("used", sa.BigInteger, nullable=False),
    # Since when the consumer has exactly this amount; not known of what earlier releases have written.
    sa.Column("since", sa.BigInteger),
    sa.ForeignKeyConstraint(["provider_id", "resource_class"], ["inventories.provider_id", "inventories.resource_class"]),
    sa.Index(None, "provider_id", "resource_class", "used"),
    **_OPTIONS,
)

# Those that have a quota. Whoever claims for one raises its generation first.
projects = sa.Table(
    "projects",
    metadata,
    sa.Column("name", sa.String(LONGEST_NAME), primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
    **_OPTIONS,
)

quotas = sa.Table(
    "quotas",
    metadata,
    sa.Column("project", sa.String(LONGEST_NAME), sa.ForeignKey("projects.name"), primary_key=True),
    sa.Column("resource_class", _NAME, primary_key=True),
    sa.Column("most", sa.BigInteger, nullable=False),
    **_OPTIONS,
)

# What consumers have had: names and UUIDs of the time, for consumers and providers come and go.
history = sa.Table(
    "history",
    metadata,
    sa.Column("id", _ROW_NUMBER, primary_key=True),
    sa.Column("consumer", _UUID, nullable=False),
    sa.Column("name", sa.String(LONGEST_PROVIDER_NAME)),
    sa.Column("project", sa.String(LONGEST_NAME)),
    sa.Column("user", sa.String(LONGEST_NAME)),
    sa.Column("provider", _UUID, nullable=False),
    sa.Column("provider_name", sa.String(LONGEST_PROVIDER_NAME), nullable=False),
    sa.Column("resource_class", _NAME, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("began", sa.BigInteger),
    sa.Column("ended", sa.BigInteger, nullable=False, index=True),
    **_OPTIONS,
)

# What runs keep for later ones, such as group_follow: one run at a time has a state, until a second of the database's clock.
states = sa.Table(
    "states",
    metadata,
    sa.Column("name", sa.String(LONGEST_NAME), primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.String(LONGEST_NAME)),
    sa.Column("held_until", sa.BigInteger),
    **_OPTIONS,
)

# MariaDB's TEXT ends at 64 KiB.
state_texts = sa.Table(
    "state_texts",
    metadata,
    sa.Column("state", sa.String(LONGEST_NAME), sa.ForeignKey("states.name"), primary_key=True),
    sa.Column("part", sa.String(64), primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("content", sa.Text().with_variant(sa.Text(2**24), "mysql"), nullable=False),
    **_OPTIONS,
)
