# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Solves side by side: the same answers wherever they run, progress, a time budget that is kept, and what goes wrong."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import dask
import distributed
import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistake, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import dask_cluster, parallel
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Resources, solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import plan_group
from ansible_collections.bareon.allocator.tests.support import dask_cluster as dask_processes

ROOT = pathlib.Path(__file__).resolve().parents[5]
FIND = "__import__('importlib.util').util.find_spec('ansible_collections')"


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Return the address of a real Dask cluster of two workers, as users run it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with dask_processes.started(tmp_path_factory.mktemp("dask")) as address:
        with distributed.Client(address, set_as_default=False) as client:
            found = [client.run_on_scheduler(eval, FIND), *client.run(eval, FIND).values()]
        assert found == [None] * 3, "what these tests say of clusters without the collection would be worth nothing"
        yield address


@pytest.fixture(params=["here", "processes", "dask"])
def resources(request):
    """Return resources of each kind."""
    if request.param == "dask":
        return Resources(scheduler=request.getfixturevalue("scheduler"))
    return Resources(workers={"here": 1, "processes": 2}[request.param])


def square(task, _seconds):
    return task * task


def told_seconds(_task, seconds):
    return seconds


def process(_task, _seconds):
    return os.getpid()


def sleep(task, _seconds):
    time.sleep(task)
    return task


def refuse(task, _seconds):
    raise InputError([Mistake("groups", f"{task} is no group")])


def what_signals_do(_task, _seconds):
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def solve_in_a_worker_of_ansible(_round):
    """Solve as in the processes of Ansible, which pass a signal on to all of their group."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, lambda number, _frame: os.killpg(0, signal.SIGKILL))
    assert solve_each(square, {"a": 1, "b": 2, "c": 3}, Resources(workers=2, seconds=60))["c"].result == 9


def end_by_signal(_task, _seconds):
    os.kill(os.getpid(), signal.SIGKILL)


def evacuate_a_group(told, _seconds):
    """Empty the first node of a group: a solve with the code of the collection, integer program and all."""
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks import evacuate as evacuate_report

    cluster = parse_inline(told)
    answer = evacuate_report.run_evacuate(Loaded(cluster, {}), {"nodes": [cluster.nodes[0].name], "mode": "all"})
    return {
        "moves": [move["to"] for move in answer["plan"]["moves"]],
        "score": answer["plan"]["score_after"],
        "at": evacuate_report.__file__,
    }


def group(number):
    nodes = [{"name": f"g{number}-{node}", "total_memory": "64 GiB", "total_disk": "1 TiB", "total_cpus": 16} for node in range(5)]
    pairs = [(one, other) for one in range(5) for other in range(5) if one != other]
    instances = [
        {
            "name": f"i{number}-{at}",
            "memory": 1024 * (1 + at % 3),
            "disk": 1024 * (10 + number),
            "vcpus": 1,
            "disk_template": "drbd",
            "primary": nodes[one]["name"],
            "secondary": nodes[other]["name"],
        }
        for at, (one, other) in enumerate(pairs)
    ]
    return {"nodes": nodes, "instances": instances}


def test_results_come_by_name_in_the_order_of_the_tasks(resources):
    tasks = {f"t{number}": number for number in (5, 3, 4, 1)}
    solved = solve_each(square, tasks, resources)
    assert [(name, one.result, one.finished) for name, one in solved.items()] == [
        ("t5", 25, True),
        ("t3", 9, True),
        ("t4", 16, True),
        ("t1", 1, True),
    ]


def test_nothing_to_solve(resources):
    assert solve_each(square, {}, Resources(workers=resources.workers)) == {}


def test_groups_are_solved_alike_everywhere(scheduler):
    tasks = {f"g{number}": group(number) for number in range(3)}
    here = solve_each(evacuate_a_group, tasks, Resources(workers=1))
    forked = solve_each(evacuate_a_group, tasks, Resources(workers=2))
    there = solve_each(evacuate_a_group, tasks, Resources(scheduler=scheduler))
    for name in tasks:
        own, by_fork, by_dask = here[name].result, forked[name].result, there[name].result
        assert own == by_fork
        assert own["moves"]
        assert (own["moves"], own["score"]) == (by_dask["moves"], by_dask["score"])
        assert "bareon_allocator-" in by_dask["at"], "the code that ran there is the one that was sent"


def test_nothing_stays_with_the_scheduler(scheduler):
    assert solve_each(evacuate_a_group, {"g0": group(0)}, Resources(scheduler=scheduler))["g0"].finished
    with distributed.Client(scheduler, set_as_default=False) as client:
        assert client.run_on_scheduler(eval, FIND) is None
        assert client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.worker_plugins)) == ["shuffle"]


def test_workers_come_and_go(tmp_path):
    tasks = {f"g{number}": group(number) for number in range(2)}
    poor = tmp_path / "poor"
    poor.mkdir()
    (poor / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')")
    with dask_processes.started(tmp_path / "cluster", workers=0) as address:
        resources = Resources(scheduler=address)
        with pytest.raises(Unavailable, match="the cluster has no workers"):
            solve_each(plan_group, dict.fromkeys(tasks), resources)
        lacks = r"cannot run this collection: the worker tcp://\S+, which is Python [\d.]+: .* No module named 'numpy'"
        with dask_processes.joined(tmp_path / "one", address, {"PYTHONPATH": str(poor)}), pytest.raises(Unavailable, match=lacks):
            solve_each(plan_group, dict.fromkeys(tasks), resources)
        with dask_processes.joined(tmp_path / "two", address):
            assert all(one.result["moves"] for one in solve_each(evacuate_a_group, tasks, resources).values())


HARM = "type('Evil', (), {{'__reduce__': lambda self: (exec, ({code!r},))}})()"
EVIL = {
    "result": HARM,
    "bytes": f"__import__('cloudpickle').dumps({HARM})",
    "within": f"[{HARM}]",
    "error": f"(_ for _ in ()).throw(Exception({HARM}))",
    "warning": f"__import__('distributed').get_worker().log_event('warn', dict(message=__import__('cloudpickle').dumps({HARM}))) or '[]'",
}


def answering(monkeypatch, file, way):
    """Have workers answer with a pickle that writes down which processes have read it."""
    code = f"import os; open({str(file)!r}, 'a').write(f'{{os.getpid()}} ')"
    monkeypatch.setattr(dask_cluster, "_AT_WORKER", EVIL[way].format(code=code))


def read_by(file):
    """Return the processes that have read it; those of the cluster may, which trust each other."""
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("way", EVIL)
def test_no_answer_of_a_worker_makes_anything_run_here(scheduler, tmp_path, monkeypatch, way):
    answering(monkeypatch, tmp_path / "harm", way)
    with pytest.raises(Unavailable):
        solve_each(square, {"a": 1}, Resources(scheduler=scheduler))
    assert str(os.getpid()) not in read_by(tmp_path / "harm")


@pytest.mark.parametrize("way", ["result", "error"])
def test_such_an_answer_would_run_where_pickles_are_read(scheduler, tmp_path, monkeypatch, way):
    """The test before would be worth nothing otherwise."""
    answering(monkeypatch, tmp_path / "harm", way)
    monkeypatch.setattr(dask_cluster, "nothing_unpickled", contextlib.nullcontext)
    with contextlib.suppress(Exception):
        solve_each(square, {"a": 1}, Resources(scheduler=scheduler))
    assert str(os.getpid()) in read_by(tmp_path / "harm")


def says_a_number(_task, _seconds) -> int:
    return 5


@pytest.mark.parametrize("answer", ['"text"', "[1]", "null", "1.5", "true", "x", '{"a": 1}', "[" * 100_000])
def test_an_answer_of_another_type_is_refused(scheduler, monkeypatch, answer):
    monkeypatch.setattr(dask_cluster, "_AT_WORKER", repr(json.dumps(["returned", answer])))
    with pytest.raises(Unavailable, match="something else than was asked for"):
        solve_each(says_a_number, {"a": 1}, Resources(scheduler=scheduler))
    monkeypatch.setattr(dask_cluster, "_AT_WORKER", repr(json.dumps(["returned", "5"])))
    assert solve_each(says_a_number, {"a": 1}, Resources(scheduler=scheduler))["a"].result == 5


@pytest.mark.parametrize("error", [["mistakes"], ["no solution"], ["no solution", "x"], ["other"], [], "x", None, ["mistakes", [["a"]]]])
def test_an_error_of_another_form_is_refused(scheduler, monkeypatch, error):
    """A future that nobody completes would be waited for without end."""
    monkeypatch.setattr(dask_cluster, "_AT_WORKER", repr(json.dumps(["raised", error])))
    with pytest.raises(Unavailable, match="something else than was asked for"):
        solve_each(says_a_number, {"a": 1}, Resources(scheduler=scheduler))


@pytest.mark.parametrize("address", ["tcp://h:8786", "h:8786", "ws://h:80", "TLS://h:8786", " tls://h:8786", "inproc://x"])
def test_a_scheduler_without_tls_is_refused_unless_that_is_asked_for(address):
    with pytest.raises(InputError) as caught:
        Resources.of({"scheduler": address, "insecure": False, "workers": 2})
    assert [mistake.place for mistake in caught.value.mistakes] == ["scheduler"]
    assert Resources.of({"scheduler": address, "insecure": True}).scheduler == address
    assert Resources.of({"scheduler": "tls://h:8786"}).scheduler == "tls://h:8786"


def heartbeat_there(_task, _seconds):
    from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import HEARTBEAT

    return HEARTBEAT


def test_workers_forget_another_version_of_the_code(scheduler, tmp_path, monkeypatch):
    changed = tmp_path / "plugins"
    for folder in dask_cluster.CODE:
        shutil.copytree(dask_cluster.PLUGINS / folder, changed / folder)
    file = changed / "plugin_utils" / "_common" / "parallel.py"
    file.write_text(file.read_text().replace("HEARTBEAT = 10.0", "HEARTBEAT = 77.0"))
    versions = []
    for plugins in (dask_cluster.PLUGINS, changed, dask_cluster.PLUGINS):
        monkeypatch.setattr(dask_cluster, "PLUGINS", plugins)
        solved = solve_each(heartbeat_there, dict.fromkeys("abcd", 0), Resources(scheduler=scheduler))
        versions.append({one.result for one in solved.values()})
    assert versions == [{10.0}, {77.0}, {10.0}]


def test_work_is_shared_by_processes(scheduler):
    tasks = dict.fromkeys("abcdef", 2)
    for resources in (Resources(workers=3), Resources(scheduler=scheduler)):
        seen = {one.result for one in solve_each(process, dict.fromkeys("abcdefgh", 0), resources).values()}
        assert os.getpid() not in seen
    begun = time.monotonic()
    solve_each(sleep, tasks, Resources(workers=6))
    assert time.monotonic() - begun < 6 * 2


def test_progress_is_told_while_jobs_run(monkeypatch):
    monkeypatch.setattr(parallel, "HEARTBEAT", 0.2)
    told = []
    solve_each(sleep, {"slow": 3.0, "fast": 0.05}, Resources(workers=2), told.append)
    assert [len(one.ended) for one in told] == sorted(len(one.ended) for one in told)
    assert (told[-1].ended, told[-1].running, told[-1].total) == (("fast", "slow"), (), 2)
    assert sum(one.ended == ("fast",) for one in told) >= 3, "also while nothing ends"
    assert str(told[0]).startswith("0 of 2 done") or "at work on slow" in str(told[0])


def test_the_time_that_is_left_is_shared_out():
    here = solve_each(told_seconds, dict.fromkeys("abcd", 0), Resources(workers=1, seconds=100))
    shares = [one.result for one in here.values()]
    assert shares == pytest.approx([25, 100 / 3, 50, 100], rel=0.05), "what one leaves goes to the others"
    two = solve_each(told_seconds, dict.fromkeys("abcd", 0), Resources(workers=2, seconds=100))
    assert min(one.result for one in two.values()) == pytest.approx(50, rel=0.05)
    assert solve_each(told_seconds, {"a": 0, "b": 0}, Resources(workers=2))["a"] == parallel.Solved(None, pytest.approx(0, abs=5))


def test_what_does_not_keep_to_its_time_is_ended(monkeypatch):
    monkeypatch.setattr(parallel, "_LEAST_GRACE", 0.5)
    begun = time.monotonic()
    solved = solve_each(sleep, {"quick": 0.01, "stuck": 600, "waits": 600}, Resources(workers=2, seconds=10))
    assert time.monotonic() - begun < 300
    assert [(name, one.finished) for name, one in solved.items()] == [("quick", True), ("stuck", False), ("waits", False)]
    assert solved["stuck"].seconds >= 9


def test_a_cluster_is_not_waited_for_either(monkeypatch, scheduler):
    monkeypatch.setattr(parallel, "_LEAST_GRACE", 0.5)
    begun = time.monotonic()
    # What is stuck keeps its worker busy to its end, also for the tests that follow: it must not outlast their patience.
    solved = solve_each(sleep, {"quick": 0.01, "stuck": 30}, Resources(scheduler=scheduler, seconds=10))
    assert time.monotonic() - begun < 30
    assert [(name, one.finished) for name, one in solved.items()] == [("quick", True), ("stuck", False)]


def test_no_job_begins_when_time_is_over():
    assert not solve_each(square, {"a": 2}, Resources(workers=1, seconds=0))["a"].finished
    assert not solve_each(square, {"a": 2, "b": 3}, Resources(workers=2, seconds=0))["b"].finished


def test_what_a_job_raises_is_raised(resources):
    with pytest.raises(InputError, match="g7 is no group"):
        solve_each(refuse, {"a": "g7", "b": "g7"}, resources)


def test_a_process_that_is_killed_is_told():
    with pytest.raises(Unavailable, match="was killed"):
        solve_each(end_by_signal, {"a": 0, "b": 0}, Resources(workers=2))


@pytest.mark.parametrize("seconds", [0, 60])
def test_nothing_of_the_processes_is_left(monkeypatch, seconds):
    """A thread that is still closing its pipes when a process of Ansible ends makes that process fail."""
    monkeypatch.setattr(parallel, "_LEAST_GRACE", 0)
    children, threads = set(multiprocessing.active_children()), set(threading.enumerate())
    solve_each(sleep, {"a": seconds, "b": seconds}, Resources(workers=2, seconds=1 if seconds else None))
    assert set(multiprocessing.active_children()) == children
    assert set(threading.enumerate()) <= threads


def test_processes_do_not_do_what_ansibles_do_about_signals():
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        solved = solve_each(what_signals_do, {"a": 0, "b": 0}, Resources(workers=2))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert solved["a"].result == [signal.SIG_DFL, signal.SIG_DFL]


def test_the_processes_of_ansible_end_well():
    """One in some hundred did not end at all, or with a code that ends the play."""
    context = multiprocessing.get_context("fork")
    for number in range(10):
        workers = [context.Process(target=solve_in_a_worker_of_ansible, args=(number,)) for _worker in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0, 0, 0]


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(Unavailable, match="scheduler tcp://127.0.0.1:9: cannot be reached"):
        solve_each(square, {"a": 2}, Resources(scheduler="tcp://127.0.0.1:9"))
    with pytest.raises(Unavailable, match="scheduler rubbish://x: cannot be reached"):
        solve_each(square, {"a": 2}, Resources(scheduler="rubbish://x"))


def test_tls_without_certificates_is_told(tmp_path):
    with pytest.raises(Unavailable, match="named in Dask's configuration: distributed.comm.tls.ca-file"):
        solve_each(square, {"a": 2}, Resources(scheduler="tls://127.0.0.1:9"))
    missing = dask_processes.client_settings({"ca-file": str(tmp_path / "no"), "cert": str(tmp_path / "no"), "key": str(tmp_path / "no")})
    with dask.config.set(missing), pytest.raises(Unavailable, match="No such file"):
        solve_each(square, {"a": 2}, Resources(scheduler="tls://127.0.0.1:9"))


def test_a_missing_library_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, parallel.__name__.replace("parallel", "dask_cluster"), raising=False)
    with pytest.raises(Unavailable, match="needs the Python library distributed on the controller"):
        solve_each(square, {"a": 2}, Resources(scheduler="tcp://127.0.0.1:9"))


ACTION = """
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Resources, Solved, solve_each


class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        resources = Resources(scheduler=self._task.args["scheduler"], workers=2, seconds=60)
        tasks = {name: name * 2 for name in ("a", "b", "c")}
        solved = solve_each(Solved, tasks, resources, lambda now: Display().display(f"PROGRESS {now}"))
        return super().run(tmp, task_vars) | {"twice": [one.result.result for one in solved.values()]}
"""


def test_it_works_in_the_processes_of_ansible(scheduler, tmp_path):
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "solve.py").write_text(ACTION)
    tasks = [{"name": "Solve", "solve": {"scheduler": address}, "register": "done"} for address in ("", scheduler)]
    show = {"name": "Show", "ansible.builtin.debug": {"msg": "{{ done.twice | join('+') }}"}}
    play = {"hosts": "one,two", "gather_facts": False, "tasks": [tasks[0], show, tasks[1], show]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    environment = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_NOCOLOR": "1"}
    environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".venv" / "collections")
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "one,two,", "-c", "local", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("aa+bb+cc") == 4, done.stdout
    assert "PROGRESS 3 of 3 done" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
