# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be the name of a consumer or an aggregate, and the UUIDs that names stand for."""

from __future__ import annotations

import pytest
from ansible.plugins.filter.core import to_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import (
    aggregate_uuid,
    consumer_uuid,
    names_by_uuid,
    provider_uuid,
    why_no_aggregate,
    why_no_consumer,
)

UUID = "7B6C1C1A-2D4A-4F0C-8C5A-0D3E3E1F9F10"


def test_a_consumer_has_the_uuid_that_ansible_makes_of_its_name():
    assert consumer_uuid("vm1") == to_uuid("vm1")
    assert consumer_uuid(UUID) == UUID.lower()


def test_provider_consumer_and_aggregate_of_one_name_have_different_uuids():
    assert len({provider_uuid("a"), consumer_uuid("a"), aggregate_uuid("a")}) == 3
    assert aggregate_uuid(aggregate_uuid("a")) == aggregate_uuid("a")


def test_only_names_have_names():
    assert names_by_uuid(["vm1", UUID], consumer_uuid) == {consumer_uuid("vm1"): "vm1"}


@pytest.mark.parametrize("name", ["vm1", "web 1", "höst Ω", "10.0.0.1", "a-b-c-d", "deadbeef", UUID])
def test_names_of_consumers(name):
    assert why_no_consumer(name) == ""


@pytest.mark.parametrize("name", ["", " vm", "vm\n", "x" * 201, 7, None, UUID[:-1], UUID + "0", UUID.replace("-", ""), UUID[:-1] + "g"])
def test_what_is_no_consumer(name):
    assert why_no_consumer(name)


@pytest.mark.parametrize("name", ["rack-a", "Rack 12", "eu/west.1", "a", UUID])
def test_names_of_aggregates(name):
    assert why_no_aggregate(name) == ""


@pytest.mark.parametrize("name", ["", "!rack", "in:rack", "a,b", " rack", "rack ", "x" * 201, 7, None, UUID[:-1]])
def test_what_is_no_aggregate(name):
    assert why_no_aggregate(name)
