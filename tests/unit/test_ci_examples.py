# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pipelines that compare plans, docs/examples/plan_diff.*: their commands as they are written, in a repository with two branches, with
the collection installed from its archive. pip finds in this environment what it is asked for, so no package index is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.house.archive import built_archive

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"

DISKS = [{"id": name, "type": "ssd", "size": "100 GiB"} for name in ("disk-a", "disk-b")]
HOSTS = {"all": {"vars": {"bareon_profile": "./web.yml"}, "hosts": {"web1": {"bareon_known_hardware": {"ram": 4096, "disks": DISKS}}}}}
MIRRORED = {"id": "srv", "type": "raid", "level": "raid1", "legs": 2, "size": "20 GiB", "mount": "/srv"}
ALONE = {"id": "srv", "type": "partition", "size": "20 GiB", "mount": "/srv"}
CHANGES = [
    ("github", "a little less", [{**MIRRORED, "size": "19.5 GiB"}], True),
    ("github", "no mirror", [ALONE], False),
    ("gitlab", "larger", [{**MIRRORED, "size": "30 GiB"}], True),
    ("gitlab", "no plan", [{**MIRRORED, "size": "200 GiB"}], False),
]


def github() -> list[str]:
    job = yaml.safe_load((EXAMPLES / "plan_diff.github.yml").read_text(encoding="utf-8"))["jobs"]["plans"]
    return [step["run"] for step in job["steps"] if "run" in step]


def gitlab() -> list[str]:
    job = yaml.safe_load((EXAMPLES / "plan_diff.gitlab-ci.yml").read_text(encoding="utf-8"))["plans"]
    return [*job["before_script"], *job["script"]]


PIPELINES: dict[str, t.Callable[[], list[str]]] = {"github": github, "gitlab": gitlab}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home in which nothing is installed, with the archive of the collection beside it."""
    folder = tmp_path_factory.mktemp("ci")
    built_archive(folder)
    (folder / "home").mkdir()
    return folder / "home"


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "GIT_", "PYTHON"))}
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **who, "HOME": str(home), "PATH": path, "GITHUB_BASE_REF": "main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}


def write(folder: Path, schema: t.Any) -> None:
    (folder / "web.yml").write_text(json.dumps({"schema": schema}), encoding="utf-8")


def repository(folder: Path, home: Path, changed: t.Any) -> Path:
    """Return a clone whose branch has a change that `main` of its origin has not."""
    origin = folder / "origin"
    origin.mkdir()
    write(origin, [MIRRORED])
    (origin / "hosts.yml").write_text(json.dumps(HOSTS), encoding="utf-8")
    archive = next(home.parent.glob("bareon-allocator-*.tar.gz"))
    (origin / "requirements.yml").write_text(json.dumps({"collections": [{"name": str(archive), "type": "file"}]}), encoding="utf-8")

    def git(where: Path, *words: str) -> None:
        subprocess.run(["git", *words], cwd=where, env=environment(home), check=True, capture_output=True, timeout=60)

    for words in (("init", "--quiet", "--initial-branch", "main"), ("add", "."), ("commit", "--quiet", "--message", "The fleet")):
        git(origin, *words)
    git(folder, "clone", "--quiet", str(origin), "clone")
    git(folder / "clone", "switch", "--quiet", "--create", "change")
    write(folder / "clone", changed)
    git(folder / "clone", "commit", "--quiet", "--all", "--allow-empty", "--message", "A change")
    return folder / "clone"


def run(command: str, folder: Path, home: Path) -> int:
    """Run a command as runners do, and return its exit status."""
    done = subprocess.run(["bash", "-e", "-c", command], cwd=folder, env=environment(home), capture_output=True, check=False, timeout=300)
    print(done.stdout.decode(), done.stderr.decode())
    return done.returncode


@pytest.mark.parametrize(("pipeline", "change", "changed", "passes"), CHANGES)
def test_the_pipeline_fails_where_a_plan_is_worse(
    pipeline: str, change: str, changed: t.Any, passes: bool, home: Path, tmp_path: Path
) -> None:
    clone, commands = repository(tmp_path, home, changed), PIPELINES[pipeline]()
    codes = [run(command, clone, home) for command in commands]
    # It is the comparison that fails, and not what comes before it.
    assert codes == [0] * (len(commands) - 1) + [0 if passes else 2], change


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("plan_diff.github*")))
def test_actions_are_those_of_our_own_workflows(example: str) -> None:
    used = {line.strip().removeprefix("- ") for line in (EXAMPLES / example).read_text(encoding="utf-8").splitlines() if "uses:" in line}
    ours = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert used
    assert all(line in ours for line in used)
