# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenStack Placement in this process: a world goes straight into its tables, a query through its WSGI application."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import pathlib
from unittest import mock

import sqlalchemy
from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy, policy
from placement.db.sqlalchemy import models
from placement.objects import allocation_candidate, research_context
from webob import Request

NEWEST = "placement 1.39"
_EMPTIED = [
    models.Allocation,
    models.Consumer,
    models.Inventory,
    models.ResourceProviderTrait,
    models.ResourceProviderAggregate,
    models.PlacementAggregate,
    models.ResourceProvider,
    models.Project,
    models.User,
]


def candidates_of(allocations_and_mappings):
    """Return candidates without order: what is allotted where, and which group goes where."""
    return {
        (
            frozenset((uuid, name, amount) for uuid, amounts in allocations.items() for name, amount in amounts.items()),
            frozenset((suffix, uuid) for suffix, uuids in mappings.items() for uuid in uuids),
        )
        for allocations, mappings in allocations_and_mappings
    }


class Placement:
    """One Placement with an SQLite file of its own; a process can have only one. `synchronous`: its default is to wait for the disk."""

    def __init__(self, folder, synchronous=False):
        logging.disable(logging.WARNING)
        config = cfg.ConfigOpts()
        placement_conf.register_opts(config)
        connection = f"sqlite:///{pathlib.Path(folder) / 'placement.sqlite'}"
        config.set_override("connection", connection, group="placement_database")
        config.set_override("sync_on_startup", True, group="placement_database")
        config.set_override("sqlite_synchronous", synchronous, group="placement_database")
        config.set_override("auth_strategy", "noauth2", group="api")
        config([], project="placement", default_config_files=[], default_config_dirs=[])
        policy.reset()
        self._app = deploy.loadapp(config)
        self._engine = db_api.get_placement_engine()
        with self._engine.begin() as connection:
            self._classes = dict(connection.execute(sqlalchemy.select(models.ResourceClass.name, models.ResourceClass.id)).all())
            self._traits = dict(connection.execute(sqlalchemy.select(models.Trait.name, models.Trait.id)).all())

    def load(self, world):
        """Replace everything by a world of plain data."""
        with self._engine.begin() as connection:
            for model in _EMPTIED:
                connection.execute(model.__table__.delete())
            self._ensure_names(connection, world)
            ids = {provider["uuid"]: number for number, provider in enumerate(world["providers"], start=1)}
            self._insert_providers(connection, world["providers"], ids)
            self._insert_memberships(connection, world["providers"], ids)
            self._insert_allocations(connection, world.get("allocations", {}), ids)

    def ask(self, query):
        """Return (HTTP status, the parsed body) of GET /allocation_candidates."""
        status, body = self.ask_text(query)
        return status, json.loads(body)

    def ask_text(self, query):
        """Return (HTTP status, the body as bytes): what a client of Placement waits for."""
        request = Request.blank(f"/allocation_candidates?{query}", headers={"x-auth-token": "admin", "OpenStack-API-Version": NEWEST})
        response = request.get_response(self._app)
        return response.status_int, response.body

    def send(self, method, path, body=None):
        """Return (HTTP status, the parsed body or None) of any request."""
        headers = {"x-auth-token": "admin", "OpenStack-API-Version": NEWEST}
        sent = {} if body is None else {"body": json.dumps(body).encode(), "content_type": "application/json"}
        response = Request.blank(path, headers=headers, method=method, **sent).get_response(self._app)
        return response.status_int, json.loads(response.body) if response.body else None

    def claim(self, consumer, allocations):
        """Return the HTTP status of PUT /allocations for a consumer that does not exist yet; `allocations` as in a world."""
        body = {
            "allocations": {provider: {"resources": amounts} for provider, amounts in allocations.items()},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        headers = {"x-auth-token": "admin", "OpenStack-API-Version": NEWEST, "content-type": "application/json"}
        request = Request.blank(f"/allocations/{consumer}", headers=headers, method="PUT", body=json.dumps(body).encode())
        return request.get_response(self._app).status_int

    def _ensure_names(self, connection, world):
        classes = {name for provider in world["providers"] for name in provider["inventories"]} | set(world.get("custom_classes", ()))
        traits = {name for provider in world["providers"] for name in provider["traits"]} | set(world.get("custom_traits", ()))
        for model, known, names in ((models.ResourceClass, self._classes, classes), (models.Trait, self._traits, traits)):
            for name in sorted(names - known.keys()):
                known[name] = connection.execute(model.__table__.insert().values(name=name)).inserted_primary_key[0]

    def _insert_providers(self, connection, providers, ids):
        parents = {provider["uuid"]: provider["parent"] for provider in providers}
        rows = []
        for provider in providers:
            root = provider["uuid"]
            while parents[root] is not None:
                root = parents[root]
            rows.append(
                {
                    "id": ids[provider["uuid"]],
                    "uuid": provider["uuid"],
                    "name": provider["name"],
                    "generation": 0,
                    "root_provider_id": ids[root],
                    "parent_provider_id": ids.get(provider["parent"]),
                }
            )
        connection.execute(sqlalchemy.text("PRAGMA defer_foreign_keys = ON"))
        _insert(connection, models.ResourceProvider, rows)
        _insert(
            connection,
            models.Inventory,
            [
                {"resource_provider_id": ids[provider["uuid"]], "resource_class_id": self._classes[name], **inventory}
                for provider in providers
                for name, inventory in provider["inventories"].items()
            ],
        )

    def _insert_memberships(self, connection, providers, ids):
        traits = [(ids[provider["uuid"]], self._traits[name]) for provider in providers for name in provider["traits"]]
        _insert(connection, models.ResourceProviderTrait, [{"resource_provider_id": one, "trait_id": other} for one, other in traits])
        names = sorted({name for provider in providers for name in provider["aggregates"]})
        aggregates = {name: number for number, name in enumerate(names, start=1)}
        _insert(connection, models.PlacementAggregate, [{"id": number, "uuid": name} for name, number in aggregates.items()])
        members = [(ids[provider["uuid"]], aggregates[name]) for provider in providers for name in provider["aggregates"]]
        _insert(
            connection, models.ResourceProviderAggregate, [{"resource_provider_id": one, "aggregate_id": other} for one, other in members]
        )

    def _insert_allocations(self, connection, allocations, ids):
        if not allocations:
            return
        _insert(connection, models.Project, [{"id": 1, "external_id": "project"}])
        _insert(connection, models.User, [{"id": 1, "external_id": "user"}])
        _insert(
            connection, models.Consumer, [{"uuid": consumer, "project_id": 1, "user_id": 1, "generation": 1} for consumer in allocations]
        )
        _insert(
            connection,
            models.Allocation,
            [
                {"consumer_id": consumer, "resource_provider_id": ids[provider], "resource_class_id": self._classes[name], "used": amount}
                for consumer, held in allocations.items()
                for provider, amounts in held.items()
                for name, amount in amounts.items()
            ],
        )


def _insert(connection, model, rows):
    if rows:
        connection.execute(model.__table__.insert(), rows)


def _equal_with_anchor(one, other):
    return (
        one.anchor_root_provider_uuid == other.anchor_root_provider_uuid
        and set(one.resource_requests) == set(other.resource_requests)
        and one.mappings == other.mappings
    )


def _hash_with_anchor(one):
    return hash((one.anchor_root_provider_uuid, frozenset(one.resource_requests)))


REPAIRS = {
    "wrong amounts: groups that ask for the same class share one mutable object (copy_arr_if_needed)": lambda: mock.patch.object(
        research_context.RequestWideSearchContext, "copy_arr_if_needed", lambda self, arr: copy.copy(arr)
    ),
    "lost hosts: equality of allocation requests ignores the anchor": lambda: mock.patch.multiple(
        allocation_candidate.AllocationRequest, __eq__=_equal_with_anchor, __hash__=_hash_with_anchor
    ),
}
"""A defect of the peer by name, and how it is repaired in this process."""


@contextlib.contextmanager
def repaired(names):
    """Repair some of the peer's defects for a while."""
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(REPAIRS[name]())
        yield
