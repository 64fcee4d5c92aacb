# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The short way of the usual claim has the results of the long one."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import at_once
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.plain import plain_claimed

HOSTS = [{"name": name, "inventories": {"VCPU": 4, "MEMORY_MB": 1024}} for name in ("host1", "host2")]


def claims(consumer, provider, amounts):
    return parse_claims([{"consumer": consumer, "allocations": {provider: amounts}, "project": "shop"}], "")


@pytest.mark.parametrize("amounts", [{"VCPU": 3}, {"VCPU": 1, "MEMORY_MB": 512}])
def test_a_new_consumer_is_told_as_by_the_long_way(bench, amounts):
    bench.put(*HOSTS)
    short = plain_claimed(make_claims(bench.ledger, claims("web1", "host1", amounts)))
    long = plain_claimed(bench.ledger.write(partial(apply_claims, claims=claims("web2", "host2", amounts))))
    (state,), (other,) = short["consumers"].values(), long["consumers"].values()
    assert list(state["allocations"].values()) == list(other["allocations"].values()) == [amounts]
    # A second may end between the two.
    own = {"name": "", "allocations": {}, "claimed_at": 0}
    assert state.keys() == other.keys()
    assert state | own == other | own
    assert set(short["names"].values()) == {"host1"}
    assert short["diff"]["after"]["web1"]["allocations"] == {"host1": amounts}
    assert bench.generations == {"host1": 1, "host2": 1}


@pytest.mark.parametrize("amounts", [{"VCPU": 4}, {"VCPU": 4, "MEMORY_MB": 1024}])
def test_the_last_that_is_free_is_claimed_the_short_way(bench, amounts, monkeypatch):
    bench.put(*HOSTS)
    monkeypatch.delattr(at_once, "plan_claims")
    (state,) = plain_claimed(make_claims(bench.ledger, claims("web1", "host1", amounts)))["consumers"].values()
    assert list(state["allocations"].values()) == [amounts]


def test_what_does_not_fit_is_refused_with_its_reason(bench):
    bench.put(*HOSTS)
    with pytest.raises(ClaimRefused) as error:
        make_claims(bench.ledger, claims("web1", "host1", {"VCPU": 5}))
    assert error.value.conflict["refused"][0]["provider_name"] == "host1"
    assert bench.generations == {"host1": 0, "host2": 0}
