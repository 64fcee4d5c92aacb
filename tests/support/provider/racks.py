# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hall of racks in a ledger of its own, filled by the actions: GPU hosts, claims of projects and users, leases, quotas, drained hosts."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.bareon.allocator.tests.support.fuzz.targets import act

HOSTS_OF_A_RACK = 40
HOSTILE = "<script>document.title='owned'</script>\"'&{{ 7 * 7 }}"


def hall(racks: int, hosts_of_a_rack: int = HOSTS_OF_A_RACK) -> list[dict[str, t.Any]]:
    """Return providers: every tenth host has a NUMA node and 2 GPUs as providers of their own, the others all that they have themselves."""
    providers: list[dict[str, t.Any]] = []
    for rack in range(1, racks + 1):
        for number in range(1, hosts_of_a_rack + 1):
            host = f"r{rack:02}-h{number:02}"
            root: dict[str, t.Any] = {"name": host, "aggregates": [f"rack{rack}", "hall"]}
            if number % 10:
                root["inventories"] = {"VCPU": 64, "MEMORY_MB": 524288, "PGPU": 8}
                providers.append(root)
            else:
                providers.append({**root, "inventories": {"DISK_GB": 2000}})
                providers.append({"name": f"{host}-numa0", "parent": host, "inventories": {"VCPU": 64, "MEMORY_MB": 524288}})
                providers += [{"name": f"{host}-gpu{at}", "parent": f"{host}-numa0", "inventories": {"PGPU": 1}} for at in range(2)]
    return providers


def claims(racks: int, hosts_of_a_rack: int = HOSTS_OF_A_RACK) -> list[dict[str, t.Any]]:
    """Return claims: on host N of a rack N % 4 of them, on hosts of GPUs one with both; every third has an end."""
    found: list[dict[str, t.Any]] = []
    for rack in range(1, racks + 1):
        for number in range(1, hosts_of_a_rack + 1):
            host = f"r{rack:02}-h{number:02}"
            share = {"VCPU": 16, "PGPU": 2 if number % 8 else 8}
            places = [{host: share}] * (number % 4 if number % 8 else 1)
            if not number % 10:
                places = [{f"{host}-numa0": {"VCPU": 8}, f"{host}-gpu0": {"PGPU": 1}, f"{host}-gpu1": {"PGPU": 1}}]
            for at, allocations in enumerate(places):
                found.append(
                    {
                        "consumer": f"train-{host}-{at}",
                        "allocations": allocations,
                        "project": ("red", "blue", "green")[rack % 3],
                        "user": f"user{number % 7}",
                        **({} if number % 3 else {"lease": "2031-01-15T18:00:00Z"}),
                    }
                )
    return found


def filled(folder: pathlib.Path, providers: list[t.Any], consumers: list[t.Any], *tasks: tuple[str, dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return what provider_info says of a ledger of these providers and consumers, after more tasks on it."""
    books = {"database": f"sqlite:///{folder}/ledger.sqlite"}
    steps = [("provider", {"providers": providers}), ("provider_allocation", {"consumers": consumers}), *tasks]
    for name, options in steps:
        done = act(name, folder, check=False)({**books, **options})
        assert not done.get("failed"), done["msg"]
    return act("provider_info", folder, check=False)({**books, "audit": True})


def hall_ledger(folder: pathlib.Path, racks: int) -> dict[str, t.Any]:
    """Return the ledger of a hall, with two drained hosts, a quota, a claim over many racks, and a name that is markup."""
    providers = hall(racks)
    providers.append({"name": "spare", "inventories": {"PGPU": 1}})
    spread = {f"r{rack:02}-h04": {"VCPU": 1} for rack in range(1, racks + 1)}
    some = [*claims(racks), {"consumer": HOSTILE, "allocations": spread, "project": "<b>red</b>", "user": HOSTILE}]
    drained = [{"name": "r01-h01", "drained": {"reason": "new fan", "until": "2031-02-01T06:00:00Z"}}, {"name": "r01-h02", "drained": True}]
    quota = {"project": "red", "limits": {"PGPU": 10000}}
    return filled(folder, providers, some, ("provider", {"providers": drained}), ("provider_quota", quota))
