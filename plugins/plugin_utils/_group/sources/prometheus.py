# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measured loads of instances from a Prometheus server, one query for each kind of load.

    with_prometheus(cluster, {"url": "http://prometheus:9090", "cpu": "sum by (name) (rate(cpu_seconds[5m]))", "label": "name"})

An answer is an instant vector: a sample for each instance, which a label names. Percentiles over a week and the like are up to the query
(quantile_over_time). Samples of what is no instance of the cluster are left out. Asked as in Prometheus' HTTP API v1.
"""

from __future__ import annotations

import math
import typing as t
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import InputError, Mistake, Mistakes, Unavailable
from ....module_utils._data.kinds import Anything, Text
from ..cluster.loads import with_loads
from ..cluster.model import Cluster, Load
from .server import Server

KINDS = ("cpu", "memory", "disk", "net")
_SAMPLE = Table("a sample", [Row("metric", Anything(), required=True), Row("value", Anything(), required=True)], others=True)
_DATA = Table(
    "the data of an answer",
    [Row("resultType", Text(), required=True), Row("result", Anything(), required=True)],
    others=True,
)
_ANSWER = Table("an answer", [Row("status", Text(), required=True), Row("data", _DATA, required=True)], others=True)


def with_prometheus(cluster: Cluster, asked: Mapping[str, t.Any] | None) -> Cluster:
    """Return the cluster with the loads that a server has. Raises InputError for queries that mean nothing here, and Unavailable."""
    if not asked:
        return cluster
    queries = {kind: asked[kind] for kind in KINDS if asked.get(kind)}
    if not queries:
        raise InputError([Mistake("prometheus", f"has no query; give one or more of {', '.join(KINDS)}")])
    server = Server(
        url=asked["url"],
        username=asked.get("username") or "",
        password=asked.get("password") or "",
        validate_certs=asked.get("validate_certs", True),
        timeout=asked.get("timeout", 60.0),
        option="prometheus",
    )
    names = cluster.instance_positions()
    mistakes = Mistakes()
    found = {kind: _ask(server, kind, query, asked.get("label") or "instance", names, mistakes) for kind, query in queries.items()}
    mistakes.check()
    measured = sorted({name for values in found.values() for name in values})
    return with_loads(cluster, {name: Load(**{kind: found.get(kind, {}).get(name, 0.0) for kind in KINDS}) for name in measured}, {})


def _ask(server: Server, kind: str, query: str, label: str, names: Mapping[str, int], mistakes: Mistakes) -> dict[str, float]:
    """Return what a query says of each instance that it names."""
    place = f"prometheus.{kind}"
    answer = _read(server.get(f"/api/v1/query?{urlencode({'query': query})}"), server.url)
    if answer["resultType"] != "vector":
        mistakes.add(place, f"gives a {answer['resultType']}; must give an instant vector, one sample for each instance")
        return {}
    found: dict[str, float] = {}
    known = [(name, value) for name, value in _samples(answer["result"], label, server.url) if name in names]
    for name, value in known:
        if name in found:
            mistakes.add(place, f"gives more than one sample with {label}={name!r}; aggregate them, such as with sum by ({label}) (...)")
        if math.isfinite(value):
            found[name] = value
            if value < 0:
                mistakes.add(place, f"gives {value:g} for {name}; must be 0 or more")
    if not known:
        mistakes.add(place, f"gives no sample whose label {label} is the name of an instance; name the right label")
    elif not found:
        mistakes.add(place, f"gives {known[0][1]:g} for {known[0][0]}, and no number for any instance; was there anything in its range?")
    return found


def _read(answer: t.Any, url: str) -> Values:
    mistakes = Mistakes()
    values = _ANSWER.read_nested(answer, "answer", mistakes)
    if list(mistakes.found()) or values["status"] != "success":
        raise Unavailable(f"{url} does not answer as Prometheus does")
    data: Values = values["data"]
    return data


def _samples(result: t.Any, label: str, url: str) -> Sequence[tuple[str, float]]:
    """Return the label and the value of each sample, without those that lack the label."""
    mistakes = Mistakes()
    found = []
    for sample in ListOf(_SAMPLE, "samples").read_nested(result, "result", mistakes):
        metric, value = sample["metric"], sample["value"]
        if isinstance(metric, Mapping) and isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
            name = metric.get(label)
            try:
                number = float(value[1])
            except ValueError:
                mistakes.add("result", "is no number")
                continue
            if isinstance(name, str):
                found.append((name, number))
        else:
            mistakes.add("result", "is no sample")
    if list(mistakes.found()):
        raise Unavailable(f"{url} does not answer as Prometheus does")
    return found
