# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ledgers as an earlier revision of the tables left them: made by its own migrations, with rows in its own form."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import migrate
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.database import make_engine
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.deadline import Deadline
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.owners import NotOwner
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.url import parse_database
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import consumer_uuid, provider_uuid

CLAIMS = (("ci-1", "red", "ann", 2), ("vm", None, None, 1), ("web", "blue", None, 1))
"""Consumers as (name, project, user, VCPU of the provider host)."""


def make_ledger(url, revision, folder):
    """Make the tables of a revision by its migrations."""
    versions = folder / "versions"
    versions.mkdir(parents=True)
    scripts = migrate.read_scripts()
    for script in scripts.iterate_revisions(revision, "base"):
        (versions / f"{script.revision}.py").write_text((migrate.MIGRATIONS / "versions" / f"{script.revision}.py").read_text())
    engine = make_engine(parse_database(url), Deadline(60))
    with engine.begin() as connection:
        migrate.upgrade(connection, migrate.read_scripts(folder))
    return engine


def fill_named(engine):
    """Write what the revision `named` had of a provider and its consumers: UUIDs follow from the names alone."""
    tables = sa.MetaData()
    tables.reflect(engine)
    host = {"id": 1, "uuid": provider_uuid("host"), "name": "host", "generation": 3, "root_id": 1}
    stock = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0, "capacity": 8}
    with engine.begin() as connection:

        def add(table, **row):
            connection.execute(sa.insert(tables.tables[table]).values(row))

        add("resource_classes", name="VCPU")
        add("resource_providers", **host)
        used = sum(amount for *_owner, amount in CLAIMS)
        add("inventories", provider_id=1, resource_class="VCPU", root_id=1, sharing=0, used=used, **stock)
        for number, (name, project, user, amount) in enumerate(CLAIMS, 1):
            # The last one is from before consumers had names.
            label = None if name == CLAIMS[-1][0] else name
            add("consumers", id=number, uuid=consumer_uuid(name), generation=5, project=project, user=user, name=label)
            add("allocations", consumer_id=number, provider_id=1, resource_class="VCPU", used=amount)


def check_migrated(url):
    """See that the consumers of fill_named belong to whom they did, and that nobody else gets them."""
    with open_ledger(url) as ledger:

        def claim(name, amount, **options):
            amounts = {"host": {"VCPU": amount}} if amount else {}
            return make_claims(ledger, parse_claims([{"consumer": name, "allocations": amounts, **options}], "consumers[{}]"))

        assert not claim("ci-1", 2, project="red", user="ann").changed
        assert not claim("vm", 1).changed
        for options in ({"project": "red", "user": "cat"}, {"user": "bob"}):
            with pytest.raises(NotOwner, match="project red, user ann"):
                claim("ci-1", 1, **options)
        assert claim("ci-1", 1, project="blue").before == {}
        named = claim("web", 1, project="blue", consumer_generation=5)
        assert [(state.consumer.uuid, state.consumer.name) for state in named.after.values()] == [(consumer_uuid("web"), "web")]
        with pytest.raises(NoSolution):
            claim("web", 2, project="blue", consumer_generation=5)
        assert claim("web", 0, project="blue").changed
