# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workflows: actions by commit, rights where nothing is installed, no secret on a command line; and locks of what builds a release."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.yml"))}
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"]]
LOCKS = {
    "requirements.lock": ["requirements.txt", "tests/utils/core.in"],
    "tests/utils/release.lock": ["tests/utils/core.in", "tests/utils/release.in"],
}
LOCKED_INSTALL = "pip install --require-hashes --only-binary :all: --requirement"
INSTALLS = re.compile(r"\b(pip|pipx|uv|npm|apt-get|apt|make|curl|wget|build-release)\b")


def job_of(name: str, job: str) -> dict[str, t.Any]:
    return WORKFLOWS[name]["jobs"][job]


def runs_of(job: dict[str, t.Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def may_write(permissions: t.Any) -> bool:
    return permissions == "write-all" or (isinstance(permissions, dict) and "write" in permissions.values())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_to_commits_and_say_of_which_release(name: str) -> None:
    lines = [line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if re.match(r"\s*(- )?uses:", line)]
    wrong = [line for line in lines if not re.fullmatch(r"\s*(- )?uses: [\w./-]+@[0-9a-f]{40}  # v[0-9]+\.[0-9]+\.[0-9]+", line)]
    assert not wrong
    assert lines


def test_one_action_is_one_commit() -> None:
    used: dict[str, set[str]] = {}
    for name, job in JOBS:
        for step in job_of(name, job)["steps"]:
            if "uses" in step:
                action, _at, commit = step["uses"].partition("@")
                used.setdefault(action, set()).add(commit)
    assert {action: commits for action, commits in used.items() if len(commits) > 1} == {}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_gives_no_right_to_write_by_default(name: str) -> None:
    assert "permissions" in WORKFLOWS[name], "without them, GitHub gives what the repository's settings say"
    assert not may_write(WORKFLOWS[name]["permissions"])


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_what_has_rights_or_secrets_installs_only_what_is_locked(name: str, job: str) -> None:
    told = job_of(name, job)
    if not may_write(told.get("permissions")) and "secrets." not in yaml.safe_dump(told):
        return
    assert not [run for run in runs_of(told) if INSTALLS.search(run) and LOCKED_INSTALL not in run]


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_no_command_line_has_a_secret_or_what_an_event_says(name: str, job: str) -> None:
    told = job_of(name, job)
    assert "secrets." not in yaml.safe_dump({**told, "steps": [{**step, "env": {}} for step in told["steps"]]})
    wrong = [
        run
        for run in runs_of(told)
        if re.search(r"\$\{\{ *(secrets|github\.(token|event|head_ref|ref_name))|--(token|api-key|password)\b", run)
    ]
    assert not wrong


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_the_token_of_a_checkout_is_not_left_in_the_folder(name: str, job: str) -> None:
    checkouts = [step for step in job_of(name, job)["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step.get("with", {}).get("persist-credentials") is False for step in checkouts)


def test_what_signs_a_release_runs_nothing_of_this_repository() -> None:
    sign = job_of("release.yml", "sign")
    assert may_write(sign["permissions"])
    assert not [step for step in sign["steps"] if "checkout" in step.get("uses", "")]
    assert job_of("release.yml", "build")["permissions"] == {"contents": "read"}
    assert "environment" not in job_of("release.yml", "build")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_one_version_and_hashes_of_all_that_is_needed(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=[a-z])", "\n" + text.replace("\\\n", " "))[1:]
    assert all(re.match(r"[a-z0-9._-]+==[^ ;]+( ;[^#]*)? +(--hash=sha256:[0-9a-f]{64}\s*)+(#[^\n]*)?\s*", entry) for entry in entries)
    locked = {entry.partition("==")[0] for entry in entries}
    wanted = {
        re.split(r"[^A-Za-z0-9._-]", line)[0].lower()
        for source in LOCKS[lock]
        for line in (ROOT / source).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    assert wanted <= locked
    assert "://" not in text, "no index is named"


def test_a_release_is_built_with_what_is_locked() -> None:
    script = (ROOT / "tests" / "utils" / "build-release").read_text(encoding="utf-8")
    installs = [line for line in script.splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line and "--only-binary :all:" in line and "tests/utils/release.lock" in line for line in installs)


class Galaxy(http.server.BaseHTTPRequestHandler):
    """Stands in for Galaxy as far as publishing goes: it refuses whom it does not know, and keeps what it was sent."""

    seen: t.ClassVar[list[tuple[str, str]]] = []

    def _answer(self, told: t.Any, status: int = 200) -> None:
        content = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        if "imports" in self.path or "tasks" in self.path:
            self._answer({"state": "completed", "started_at": "x", "finished_at": "y", "messages": [], "error": None})
        else:
            self._answer({"available_versions": {"v3": "v3/"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers.get("Authorization", ""), self.path))
        known = self.headers.get("Authorization") == "Token very-secret" and b"bareon-allocator-1.2.3.tar.gz" in body
        host = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._answer({"task": f"{host}/api/v3/imports/collections/1/"} if known else {"errors": []}, 202 if known else 401)

    def log_message(self, *_told: t.Any) -> None:
        """Say nothing."""


def test_the_step_that_publishes_sends_the_token_from_its_environment(tmp_path: Path) -> None:
    (step,) = (step for step in job_of("release.yml", "galaxy")["steps"] if "secrets." in yaml.safe_dump(step))
    archive = tmp_path / "built" / "release" / "bareon-allocator-1.2.3.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as packed:
        packed.addfile(tarfile.TarInfo("MANIFEST.json"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Galaxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/api/"
    given = {key: {"https://galaxy.ansible.com/": url}.get(value, value) for key, value in step["env"].items()}
    given = {key: "very-secret" if "secrets." in value else value for key, value in given.items()}
    environment = os.environ | given | {"GITHUB_REF_NAME": "1.2.3", "ANSIBLE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment.pop("ANSIBLE_CONFIG", None)
    try:
        done = subprocess.run(
            ["bash", "-ec", step["run"]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [authorization for authorization, _path in Galaxy.seen] == ["Token very-secret"]
    assert "very-secret" not in done.stdout + done.stderr
