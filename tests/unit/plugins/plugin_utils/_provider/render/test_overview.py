# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page of a ledger shows: the same amounts as provider_info, hosts by rack, owners and ends, drains, and no markup of others."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.ledger_to_html import ledger_to_html
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.render.overview import overview
from ansible_collections.bareon.allocator.tests.support.provider.racks import HOSTILE, filled, hall_ledger

RACKS = 2


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return hall_ledger(tmp_path_factory.mktemp("ledger"), RACKS)


@pytest.fixture(scope="module")
def shown(ledger):
    return overview(ledger, ["rack*"])


def test_room_is_what_provider_info_counts_less_what_is_drained(ledger, shown):
    for room in shown.rooms:
        total = ledger["totals"][room.name]
        assert (room.capacity, room.used, room.free + room.closed) == (total["capacity"], total["used"], total["free"])
        assert room.free == sum(one.free for rack in shown.racks for one in rack.rooms if one.name == room.name)
        assert room.largest == max(one.free for host in shown.hosts for one in host.rooms if one.name == room.name)
        assert sum(room.parts) == pytest.approx(100)
    # 6 GPUs of the first drained host are not used, 4 of the second.
    assert next(room.closed for room in shown.rooms if room.name == "PGPU") == 10


def test_hosts_are_in_their_racks_in_natural_order(shown):
    assert [(rack.name, len(rack.hosts)) for rack in shown.racks] == [("rack1", 40), ("rack2", 40), ("", 1)]
    names = [host.name for host in shown.hosts]
    assert names == [f"r{rack:02}-h{number:02}" for rack in (1, 2) for number in range(1, 41)] + ["spare"]
    assert [host.number for host in shown.hosts] == list(range(81))


def test_without_patterns_a_host_is_in_its_smallest_aggregate(ledger):
    assert [rack.name for rack in overview(ledger).racks] == ["rack1", "rack2", ""]
    assert [rack.name for rack in overview(ledger, ["hall"]).racks] == ["hall", ""]


def test_claims_have_owner_end_amounts_and_hosts(shown):
    claims = {claim.name: claim for claim in shown.claims}
    claim = claims["train-r01-h03-1"]
    assert (claim.project, claim.user, claim.until, claim.amounts) == ("blue", "user3", "2031-01-15 18:00", (("PGPU", 2), ("VCPU", 16)))
    assert (shown.projects[claim.owners[0]], shown.users[claim.owners[1]]) == ("blue", "user3")
    assert claims["train-r01-h01-0"].until == ""
    assert [name for _number, name in claims[HOSTILE].hosts] == ["r01-h04", "r02-h04"]
    nested = claims["train-r01-h10-0"]
    assert nested.amounts == (("PGPU", 2), ("VCPU", 8))
    assert nested.hosts == ((9, "r01-h10"),)


def test_a_host_has_its_parts_with_their_holders(shown):
    host = next(host for host in shown.hosts if host.name == "r02-h20")
    holders = {(part.provider, part.name): part.holders for part in host.parts}
    assert holders["r02-h20-gpu1", "PGPU"] == ("train-r02-h20-0",)
    assert holders["r02-h20-numa0", "MEMORY_MB"] == ()
    assert [(room.name, room.free, room.capacity) for room in host.rooms] == [
        ("DISK_GB", 2000, 2000),
        ("MEMORY_MB", 524288, 524288),
        ("PGPU", 0, 2),
        ("VCPU", 56, 64),
    ]


def test_shades_follow_the_scarcest_class(shown):
    shades = {host.name: host.shade for host in shown.hosts}
    # Nothing, 2 of 8 GPUs, 6 of 8, 8 of 8.
    assert [shades[name] for name in ("spare", "r02-h01", "r02-h03", "r02-h08")] == [0, 1, 2, 4]


def test_drains_are_said_with_reason_and_end(shown):
    drained = {host.name: host.drains for host in shown.hosts if host.is_closed}
    assert drained == {"r01-h01": ("drained, new fan, until 2031-02-01 06:00",), "r01-h02": ("drained",)}


def test_what_lies_below_a_drained_provider_is_closed_and_its_host_is_not(tmp_path):
    providers = [
        {"name": "n", "inventories": {"VCPU": 4}},
        {"name": "numa", "parent": "n", "drained": {"reason": "burnt"}},
        {"name": "gpu", "parent": "numa", "inventories": {"PGPU": 2}},
    ]
    (host,) = overview(filled(tmp_path, providers, [])).hosts
    assert (host.is_closed, host.drains) == (False, ("numa drained, burnt",))
    assert [(room.name, room.free, room.closed) for room in host.rooms] == [("PGPU", 0, 2), ("VCPU", 4, 0)]


def test_quotas_and_contradictions_are_shown(ledger, shown):
    assert [(quota.project, quota.name, quota.limit) for quota in shown.quotas] == [("red", "PGPU", 10000)]
    wrong = overview({**ledger, "audit": [{"kind": "sum", "about": "u", "name": "n<1>", "says": "sums differ"}]})
    assert wrong.findings == ("n<1>: sums differ",)
    assert "n&lt;1&gt;: sums differ" in ledger_to_html({**ledger, "audit": [{"name": "n<1>", "says": "sums differ"}]})


class Tags(HTMLParser):
    """All tags of a page, and how many end without having begun."""

    def __init__(self):
        super().__init__()
        self.seen, self.open, self.astray = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, tuple(name for name, _value in attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.astray += 1


def test_names_are_text_wherever_they_stand(tmp_path):
    """The same ledger with harmless names has the same tags and attributes."""
    pages = []
    for name in ("harmless", '"><img src=x onerror=alert(1)><!--'):
        folder = tmp_path / str(len(pages))
        folder.mkdir()
        held = {"consumer": name, "allocations": {"0 host": {"VCPU": 1}}, "project": name, "user": name}
        host = {"name": "0 host", "aggregates": ["rack"], "inventories": {"VCPU": 2}}
        ledger = filled(folder, [host, {"name": "other", "inventories": {"VCPU": 1}}], [held])
        renamed = {**ledger, "providers": [{**one, "name": f"{one['name']}{name}", "aggregates": [name]} for one in ledger["providers"]]}
        renamed["providers"][0]["drained"] = {"reason": name}
        tags = Tags()
        tags.feed(ledger_to_html(renamed, title=name))
        assert (tags.open, tags.astray) == ([], 0)
        pages.append(tags.seen)
    assert pages[0] == pages[1]


def test_the_page_loads_nothing_and_runs_its_own_script_only(ledger):
    page = ledger_to_html(ledger, ["rack*"], "Hall")
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/=]+'\"", page)
    assert page.count("<script") == 1
    assert not re.search(r"https?://|url\(|@import|\son[a-z]+=", page.replace("http://www.w3.org", ""))


def test_equal_ledgers_give_equal_pages(ledger):
    assert ledger_to_html(ledger) == ledger_to_html(ledger)


def test_an_empty_ledger_has_a_page(tmp_path):
    assert "<b>0</b> hosts" in ledger_to_html(filled(tmp_path, [], []))


@pytest.mark.parametrize("ledger", [None, [], "ledger", {}, {"providers": []}, {"providers": 1, "usages": {}, "consumers": {}}])
def test_what_is_no_ledger_is_refused(ledger):
    with pytest.raises(AnsibleFilterError, match="ledger_to_html"):
        ledger_to_html(ledger)


@pytest.mark.parametrize("racks", ["rack*", 7, None, {"rack": 1}])
def test_racks_that_are_no_list_are_refused(ledger, racks):
    with pytest.raises(AnsibleFilterError, match="racks of ledger_to_html"):
        ledger_to_html(ledger, racks)
