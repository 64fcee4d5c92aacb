# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door of the filter that makes providers of a plan."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter import plan_to_providers as door
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import libraries

PLAN = {"schema": {}}
FACTS = {"processor_vcpus": 4, "memtotal_mb": 2048}


def test_filter_is_found_by_its_name():
    found = door.FilterModule().filters()["plan_to_providers"](PLAN, "host1", FACTS)
    assert found == [{"name": "host1", "inventories": {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 2048}}}]


def test_mistakes_become_one_message_of_the_filter():
    with pytest.raises(AnsibleFilterError, match=r"(?s)3 mistakes.*memtotal_mb.*plan\.schema.*host: "):
        door.plan_to_providers({}, "", {"processor_vcpus": 4})


def test_what_is_no_plain_data_is_refused():
    with pytest.raises(AnsibleFilterError, match="object is not plain data"):
        door.plan_to_providers(PLAN, "host1", {"processor_vcpus": object()})


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(libraries._causes, "os_traits", ImportError("no such thing", name="os_traits"))
    with pytest.raises(AnsibleFilterError, match=r"no such thing.*-m pip install -r /.*requirements-ledger.txt"):
        door.plan_to_providers(PLAN, "host1", FACTS)
