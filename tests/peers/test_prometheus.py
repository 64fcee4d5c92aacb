# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Loads from a real Prometheus, Debian's package, which holds a week of samples; `make peers-prometheus` installs it and runs this."""

from __future__ import annotations

import math
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance

POOL = {"type": "external", "pool": "ceph"}
HOURS = 7 * 24
CPU = {"day": [3.0 if hour % 24 < 6 else 0.1 for hour in range(HOURS)], "flat": [1.0] * HOURS, "idle": [0.0] * HOURS}
"""Of one that is busy for six hours of each day, one that always is a little, and one that never is."""


def cluster():
    nodes = [{"name": name, "total_memory": 65536, "total_cpus": 64, "storage": [POOL]} for name in ("n1", "n2")]
    names = ["day", "flat", "idle", "other"]
    return {
        "nodes": nodes,
        "instances": [{"name": n, "memory": 1024, "disk": 1, "vcpus": 1, "primary": "n1", "storage": POOL} for n in names],
    }


def exposition(now):
    """Return a week of samples in OpenMetrics' text format, an hour apart."""
    lines = ["# TYPE vm_cpu gauge"]
    for name, values in CPU.items():
        at = (now - (HOURS - number) * 3600 for number in range(HOURS))
        lines += [f'vm_cpu{{name="{name}"}} {value} {when}' for value, when in zip(values, at)]
    twice = [f'host_cpu{{name="day",host="{host}"}} 1 {now - 60}' for host in ("h1", "h2")]
    return "\n".join([*lines, "# TYPE host_cpu gauge", *twice, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    assert shutil.which("promtool"), "install Debian's package prometheus"
    home = tmp_path_factory.mktemp("prometheus")
    (home / "samples").write_text(exposition(int(time.time())))
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples", "data"], cwd=home, check=True, capture_output=True)
    (home / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--storage.tsdb.retention.time=30d"], cwd=home, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process, home / "log")
        yield url
    finally:
        process.terminate()
        process.wait()


def wait_for(url, process, log: pathlib.Path):
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready") as answer:
                assert answer.status == 200
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(log.read_text())


def loads(server, **queries):
    loaded = load_any_cluster({"cluster": cluster(), "prometheus": {"url": server, "label": "name", **queries}}, str)
    return {instance.name: instance.load for instance in loaded.cluster.instances}


def percentile(name, share):
    """Return the quantile of a week as Prometheus defines it: linear between the nearest ranks."""
    values = sorted(CPU[name])
    at = share * (len(values) - 1)
    low = math.floor(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def test_a_percentile_of_a_week(server):
    found = loads(server, cpu="quantile_over_time(0.95, vm_cpu[8d])", memory="avg_over_time(vm_cpu[8d])")
    for name in CPU:
        assert found[name].cpu == pytest.approx(percentile(name, 0.95))
        assert found[name].memory == pytest.approx(sum(CPU[name]) / HOURS)
        assert (found[name].disk, found[name].net) == (0.0, 0.0), "what nobody asked for"
    assert found["other"].cpu == 1.0, "nobody measured it, so that it keeps its load"


def test_the_balance_goes_by_it(server):
    busiest = {"url": server, "label": "name", "cpu": "quantile_over_time(0.9, vm_cpu[8d])"}
    loaded = load_any_cluster({"cluster": cluster(), "prometheus": busiest}, str)
    plan = run_balance(loaded, {"score": "capacity"}, solve_each)["plan"]
    left = {move["instance"] for move in plan["moves"]}
    assert ("day" in left) != ("flat" in left), "the two busy ones part"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"cpu": "vm_cpu offset 30d"}, r"prometheus.cpu: gives no sample whose label name"),
        ({"cpu": "0 * last_over_time(vm_cpu[8d]) / 0"}, r"prometheus.cpu: gives nan for day, and no number for any instance"),
        ({"cpu": "sum(sum_over_time(vm_cpu[8d]))"}, r"prometheus.cpu: gives no sample whose label name"),
        ({"cpu": "last_over_time(host_cpu[8d])"}, r"prometheus.cpu: gives more than one sample with name='day'"),
        ({"net": "-last_over_time(vm_cpu[8d]) - 1"}, r"prometheus.net: gives -[\d.]+ for day; must be 0 or more"),
        ({"disk": "vm_cpu[8d]"}, r"prometheus.disk: gives a matrix; must give an instant vector"),
        ({"disk": "scalar(vm_cpu)"}, r"prometheus.disk: gives a scalar; must give an instant vector"),
        ({"label": "name"}, "prometheus: has no query"),
        ({"url": "ftp://x", "cpu": "x"}, r"prometheus.url"),
    ],
)
def test_queries_that_mean_nothing_here(server, asked, says):
    with pytest.raises(InputError, match=says):
        loads(server, **asked)


def test_the_reason_why_it_is_no_promql_is_told(server):
    with pytest.raises(Unavailable, match="400 Bad Request: .*parse error"):
        loads(server, cpu="sum by (")
