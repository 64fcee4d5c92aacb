# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ZFS pools of a plan against those that a host has imported, where its facts have pools."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Iterator, Mapping

from ....module_utils._storage import zfs
from ....module_utils._storage.filesystems import NOT_MOUNTED
from ....module_utils._storage.units import MIB
from .findings import Finding, State

Plain = Mapping[str, t.Any]
_PARTS = {"data": "vdevs", "log": "logs", "cache": "caches", "spare": "spares"}


def compare_zpools(schema: Plain, facts: Plain) -> Iterator[Finding]:
    """Give what is not as planned: pools, what they lie on, datasets, and properties that are set to something else."""
    if "zpools" not in facts:
        return
    present = {pool["name"]: pool for pool in facts["zpools"]}
    for pool in schema.get("zpools") or ():
        there = present.get(pool["name"])
        if there is None:
            yield Finding(pool["name"], State.DIFFERS, "the ZFS pool is not there, or not imported")
            continue
        if there["health"] not in zfs.WHOLE:
            yield Finding(pool["name"], State.DIFFERS, f"the ZFS pool is {there['health']}")
        counted = Counter(vdev["part"] for vdev in there["vdevs"])
        for part, key in _PARTS.items():
            # A stripe is each device for itself.
            entries = pool.get(key) or ()
            wanted = sum(len(one["devices"]) if isinstance(one, Mapping) and one["type"] == zfs.Vdev.STRIPE else 1 for one in entries)
            if counted[part] != wanted:
                yield Finding(
                    pool["name"], State.DIFFERS, f"the ZFS pool has {counted[part] or 'no'} {key}, in the plan {wanted or 'none'}"
                )
        datasets = {dataset["name"]: dataset for dataset in there["datasets"]}
        for dataset in ({**pool, "name": "", "mount": pool.get("mount") or NOT_MOUNTED}, *(pool.get("datasets") or ())):
            name = f"{pool['name']}/{dataset['name']}" if dataset["name"] else pool["name"]
            if name in datasets:
                yield from _properties(name, dataset, datasets[name])
            else:
                yield Finding(name, State.DIFFERS, "the dataset is not there")


def _properties(name: str, dataset: Plain, there: Plain) -> Iterator[Finding]:
    """Compare what is set on a dataset itself; what it inherits is that of another."""
    mount = dataset.get("mount")
    if mount and there["mountpoint"] != mount:
        yield Finding(name, State.DIFFERS, f"the mount point is {there['mountpoint']}, in the plan {mount}")
    wanted = {key: _word(value) for key, value in (dataset.get("properties") or {}).items()}
    wanted |= {key: dataset[key] * MIB for key in ("quota", "reservation") if dataset.get(key)}
    for key, value in sorted(wanted.items()):
        found = there["properties"].get(key)
        if found is not None and zfs.plain_value(str(found)) != zfs.plain_value(str(value)):
            yield Finding(name, State.DIFFERS, f"{key} is {found}, in the plan {value}")


def _word(value: t.Any) -> t.Any:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value
