# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How nodes of libvirt are asked, with a program that stands in for virsh; tests/libvirt has the real one."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.documents import parse_libvirt
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.virsh import fetch_libvirt
from ansible_collections.bareon.allocator.tests.support.group.libvirt import domain, install_virsh, node, pool

UUIDS = ("11111111-7452-4b32-bd5d-5fd4ec6e5ebf", "22222222-7452-4b32-bd5d-5fd4ec6e5ebf")
POOL = "82aa395b-d9be-4335-8dab-479c871bae23"


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return what asks nodes that print what is given, by their names."""
    install_virsh(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    def run(nodes, timeout=30.0, log=False):
        for name, answers in nodes.items():
            if answers is not None:
                (tmp_path / name).write_text(json.dumps(answers))
        found = fetch_libvirt({name: f"test:///{name}" for name in nodes}, timeout)
        return (tmp_path / "log").read_text().splitlines() if log else found

    return run


def printed(**more):
    """Return what the commands of a node with two domains and a pool print."""
    one = node()
    return {
        "nodeinfo": one["nodeinfo"],
        "nodememstats": one["nodememstats"],
        "freepages --all": one["freepages"],
        "capabilities": one["capabilities"],
        "domcapabilities": one["domcapabilities"],
        "net-list --name": "default\n",
        "list --all --with-snapshot --uuid": f"{UUIDS[1]}\n",
        "domstats --state --balloon --block": "Domain: 'web'\n  state.state=5\n",
        "list --all --uuid": "\n".join([*UUIDS, ""]),
        "pool-list --uuid": f"{POOL}     \n",
        f"dumpxml {UUIDS[0]}": domain("web", uuid=UUIDS[0]),
        f"dumpxml {UUIDS[1]}": domain("db", uuid=UUIDS[1]),
        f"pool-dumpxml {POOL}": pool("vms"),
        f"vol-list {POOL} --details": " a   /images/a   file   1.00 GiB   1.00 GiB\n",
    } | more


def test_all_that_is_asked_is_read(ask):
    cluster = parse_libvirt(ask({"n1": printed(), "n2": None}))
    assert {guest.name: guest.uses_memory for guest in cluster.instances} == {"web": False, "db": True}
    assert [one.state for one in cluster.nodes] == ["up", "unreachable"]
    assert [rule.reason for rule in cluster.rules] == ["snapshots"]
    assert str(cluster.nodes[0].storage[0].name) == "internal/vms"


def test_each_node_is_called_twice(ask):
    assert len(ask({"n1": printed(), "n2": printed()}, log=True)) == 4


def test_an_older_libvirt_answers_a_part(ask):
    answers = {name: text for name, text in printed().items() if not name.startswith(("domcap", "freepages", "net-", "nodemem", "pool"))}
    cluster = parse_libvirt(ask({"n1": answers}))
    assert len(cluster.instances) == 2
    assert not cluster.nodes[0].storage


@pytest.mark.parametrize("lost", [f"dumpxml {UUIDS[0]}", "list --all --uuid"])
def test_half_of_a_node_is_none(ask, lost):
    """A guest that cannot be read is not left out, as if its memory were free."""
    answers = {name: text for name, text in printed().items() if name != lost}
    assert list(ask({"n1": answers, "n2": printed()})["n1"]) == ["unreachable"]


def test_what_a_host_prints_is_no_command(ask):
    """Only what looks like a UUID is asked for."""
    hostile = printed(**{"list --all --uuid": f"{UUIDS[0]}; undefine web\n--help\n{UUIDS[0]}\n"})
    log = "".join(ask({"n1": hostile}, log=True))
    assert "undefine" not in log
    assert "--help" not in log


def test_a_node_that_hangs_is_unreachable(ask):
    found = ask({"n1": printed(seconds=60), "n2": printed()}, timeout=3.0)
    assert "3 s" in found["n1"]["unreachable"]
    assert "domains" in found["n2"]


def test_no_node_answers(ask):
    with pytest.raises(Unavailable, match="n1: Cannot recv data: Connection refused"):
        ask({"n1": None})


def test_without_virsh(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="virsh"):
        fetch_libvirt({"n1": "test:///default"}, 60.0)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e9])
def test_timeouts(timeout):
    with pytest.raises(InputError):
        fetch_libvirt({"n1": "test:///default"}, timeout)


def many(count):
    """Return what the commands of a node with that many domains print."""
    uuids = [f"{number:08x}-7452-4b32-bd5d-5fd4ec6e5ebf" for number in range(count)]
    found = {f"dumpxml {uuid}": domain(f"g{number}", uuid=uuid) for number, uuid in enumerate(uuids)}
    return printed(**{"list --all --uuid": "\n".join(uuids)}) | found


def test_more_guests_than_one_call_asks_for_are_all_read(ask):
    found = ask({"n1": many(1700)})
    assert len(parse_libvirt(found).instances) == 1700
    assert len(ask({"n1": many(1700)}, log=True)) == 2 * (1 + 4)


def test_a_node_that_lists_more_domains_than_libvirt_can_is_not_believed(ask):
    endless = "\n".join(f"{number:08x}-7452-4b32-bd5d-5fd4ec6e5ebf" for number in range(20_000))
    found = ask({"n1": printed(**{"list --all --uuid": endless}), "n2": printed()})
    assert "16384" in found["n1"]["unreachable"]
    assert "domains" in found["n2"]


def test_a_domain_that_is_listed_again_and_again_is_one(ask):
    again = printed(**{"list --all --uuid": f"{UUIDS[0]}\n" * 30_000})
    assert len(ask({"n1": again})["n1"]["domains"]) == 1


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_an_answer_without_an_end_is_cut_off_by_its_size(ask, stream):
    """It is long before the time is over, and the program is ended."""
    found = ask({"n1": printed(endless=stream), "n2": printed()}, timeout=600.0)
    assert "MiB" in found["n1"]["unreachable"]
    assert "domains" in found["n2"]
