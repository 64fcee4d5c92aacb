# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs in the execution environment, as ansible-runner starts them for AWX: each in a new container, with a read-only home and no terminal.

AWX itself is not here. What it adds, the variables and files of its credentials and surveys, is written as ansible-runner gets it from it.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import states
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.tests.support.provider import servers

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = "localhost/bareon-allocator:ee"
DISKS = [{"id": f"/dev/disk/by-id/wwn-0x5000c500a1b2c3d{n}", "dev": f"/dev/sd{n}", "type": "ssd", "size": 953869} for n in range(2)]
MACHINE = {"bareon_known_hardware": {"firmware": "uefi", "ram": 65536, "disks": DISKS}}


class Job(t.NamedTuple):
    """How a job ended, what it printed, and the folder that was made for it."""

    code: int
    printed: str
    folder: pathlib.Path


@pytest.fixture
def run(tmp_path: pathlib.Path) -> t.Callable[..., Job]:
    """Return a function that runs a playbook of `project` as a new job."""
    count = iter(range(100))

    def job(playbook: str, *, environment: dict[str, str] | None = None, volume: pathlib.Path | None = None, **variables: t.Any) -> Job:
        folder = tmp_path / f"job{next(count)}"
        shutil.copytree(ROOT / "tests" / "awx" / "project", folder / "project")
        for name, content in (("envvars", {"ANSIBLE_HOME": "/tmp/ansible", **(environment or {})}), ("extravars", variables)):
            (folder / "env").mkdir(exist_ok=True)
            (folder / "env" / name).write_text(json.dumps(content))
        (folder / "inventory").mkdir()
        (folder / "inventory" / "hosts.json").write_text(json.dumps({"all": {"hosts": {"web1": MACHINE}}}))
        # Without this, ansible-runner gives the job a terminal, which AWX does not.
        (folder / "env" / "settings").write_text(json.dumps({"runner_mode": "subprocess"}))
        options = ["--process-isolation", "--process-isolation-executable", "podman", "--container-image", IMAGE]
        # Whoever starts rootless podman is root in the container, and owns the folders of the job.
        for option in ("--user=root", "--network=host", "--pull=never", "--read-only", "--tmpfs=/tmp", "--env=HOME=/home/runner"):
            options.append(f"--container-option={option}")
        if volume is not None:
            options += ["--container-volume-mount", f"{volume}:/state"]
        command = ["tests/molecule/environment", ".venv/bin/ansible-runner", "run", str(folder), "--playbook", playbook, *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
        return Job(done.returncode, done.stdout + done.stderr, folder)

    return job


def test_jobs_share_a_ledger_on_a_server(run: t.Callable[..., Job]) -> None:
    with servers.postgresql() as url:
        jobs = [run("claim.yml", environment={"BAREON_DATABASE": url}, job=name) for name in ("job1", "job2", "job3")]
        world = load_world(url)
    assert [job.code == 0 for job in jobs] == [True, True, False], "\n".join(job.printed for job in jobs)
    assert "job1" in jobs[2].printed
    assert "job2" in jobs[2].printed
    assert len({tuple(allocated) for allocated in world.allocations.values()}) == 2


def test_a_job_whose_ledger_would_be_lost_is_refused(run: t.Callable[..., Job]) -> None:
    job = run("claim.yml", job="job1")
    assert job.code != 0
    assert "BAREON_DATABASE" in job.printed


def test_plans_stay_on_a_volume_only(run: t.Callable[..., Job], tmp_path: pathlib.Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    lost = run("plan.yml", bareon_profile="web-vm", bareon_plans="plans")
    kept = run("plan.yml", bareon_profile="web-vm", bareon_plans="/state/plans", bareon_drawings="/state/drawings", volume=state)
    assert (lost.code, kept.code) == (0, 0), lost.printed + kept.printed
    assert "on a volume with bareon_plans" in lost.printed
    assert "on a volume with bareon_drawings" in lost.printed
    assert "on a volume" not in kept.printed
    assert json.loads((state / "plans" / "web1.json").read_text())["disks"]


def test_what_a_cluster_is_followed_by_outlives_a_job(run: t.Callable[..., Job], tmp_path: pathlib.Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    first = run("follow.yml", follow_folder="/state/follow", follow_now="2026-03-02T08:00:00Z", volume=state)
    assert first.code == 0, first.printed
    assert "on a volume" not in first.printed
    kept = json.loads((state / "follow" / "state.json").read_text())
    second = run("follow.yml", follow_folder="/state/follow", follow_now="2026-03-02T08:01:00Z", volume=state)
    assert second.code == 0, second.printed
    assert json.loads((state / "follow" / "state.json").read_text())["moved"] == kept["moved"]
    lost = run("follow.yml", follow_now="2026-03-02T08:00:00Z")
    assert "in the playbook follow_folder" in lost.printed


def test_a_cluster_is_followed_by_jobs_that_share_nothing_but_a_ledger(run: t.Callable[..., Job]) -> None:
    def kept(url: str) -> states.StoredText:
        with open_ledger(url) as ledger:
            return ledger.read(lambda connection: states.stored_text(connection, "sample", "follow"))

    with servers.postgresql() as url:
        asked = {"follow_state": "ledger", "follow_state_name": "sample", "environment": {"BAREON_DATABASE": url}}
        first = run("follow.yml", follow_now="2026-03-02T08:00:00Z", **asked)
        assert first.code == 0, first.printed
        assert "state.json" not in first.printed
        before = kept(url)
        second = run("follow.yml", follow_now="2026-03-02T08:01:00Z", **asked)
        assert second.code == 0, second.printed
        after = kept(url)
    assert before.content is not None
    assert after.content is not None
    seen = [json.loads(text.content or "")["groups"]["group-01"]["urgent"]["down"] for text in (before, after)]
    assert seen == [1, 2], "the second job knows what the first has seen"
    assert "repairs what is wrong" not in first.printed
    assert "repairs what is wrong" in second.printed
