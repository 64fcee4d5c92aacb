# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usual claim gives on every server what the long way gives: each is tried on a copy of the same providers."""

from __future__ import annotations

import uuid
from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.rehearsal import rehearse

STOCK = {
    "VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 1.5, "max_unit": 4},
    "DISK_GB": {"total": 100, "min_unit": 5, "step_size": 10},
}
ASKED = [
    {"VCPU": 2},
    {"VCPU": 5},
    {"VCPU": 4, "DISK_GB": 5},
    {"VCPU": 1, "DISK_GB": 15},
    {"DISK_GB": 90},
    {"VCPU": 3},
    {"VCPU": 1, "DISK_GB": 10},
    {"PGPU": 1},
    {"VCPU": 1, "PGPU": 1},
    {"VCPU": 1},
]


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def ledger(request, tmp_path):
    url = f"sqlite:///{tmp_path}/x.sqlite" if request.param == "sqlite" else request.getfixturevalue(request.param)
    with open_ledger(url) as opened:
        yield opened


def shape(claimed):
    """What a claim has given, without the names of the run."""
    (state,) = claimed.after.values()
    return [
        (state.consumer.generation, state.consumer.project, state.consumer.type),
        *(list(amounts.items()) for amounts in state.amounts.values()),
    ]


def test_the_usual_claim_is_the_long_one(ledger):
    run = uuid.uuid4()
    pairs = [f"{run} {way}" for way in ("short", "long")]
    ledger.write(partial(put_providers, changes=parse_changes([{"name": name, "inventories": STOCK} for name in pairs], "providers[{}]")))
    for amounts in ASKED:
        told = []
        for name, way in zip(pairs, (make_claims, lambda at, claims: at.write(partial(apply_claims, claims=claims))), strict=True):
            claims = [Claim(str(uuid.uuid4()), {name: amounts}, "web", None, type="INSTANCE")]
            try:
                claimed = way(ledger, claims)
                told.append((shape(claimed), list(claimed.generations.values()), way(ledger, claims).changed))
            except NoSolution as error:
                told.append([(entry["reason"], entry["says"].replace(name, "")) for entry in error.conflict["refused"]])
        assert told[0] == told[1], amounts
    with pytest.raises(NoSolution, match="there is no provider nobody"):
        make_claims(ledger, [Claim(str(uuid.uuid4()), {"nobody": {"VCPU": 1}})])
    assert [finding for finding in ledger.read(audit) if str(run) in finding.says] == []


def test_a_server_is_rehearsed_in_a_copy(ledger, tmp_path):
    name = str(uuid.uuid4())
    url = ledger.url.render_as_string(hide_password=False)
    entries = [{"name": name, "inventories": STOCK}, {"name": f"{name} above"}]
    ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))
    ledger.write(partial(put_providers, changes=parse_changes([{"name": name, "parent": f"{name} above"}], "providers[{}]")))
    make_claims(ledger, [Claim(str(uuid.uuid4()), {name: {"VCPU": 1}})])
    (tmp_path / "copies").mkdir()
    with open_ledger(rehearse(url, tmp_path / "copies")) as copy:
        assert copy.read(audit) == ledger.read(audit)
        make_claims(copy, [Claim(str(uuid.uuid4()), {name: {"VCPU": 4}})])
    with open_ledger(rehearse(url, tmp_path / "copies")) as copy, pytest.raises(NoSolution, match="5 requested"):
        make_claims(copy, [Claim(str(uuid.uuid4()), {name: {"VCPU": 5}})])
    assert make_claims(ledger, [Claim(str(uuid.uuid4()), {name: {"VCPU": 4}})]).changed
