# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users install: the archive holds all that they need, nothing that is only for tests, and is not large."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOPS = {
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "SECURITY.md"),
    *("changelogs", "docs", "meta", "playbooks", "plugins", "profiles", "requirements.txt", "roles", "tests"),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive of the files that belong to the project."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("built")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "ansible", "galaxy", "collection", "build", "--output-path", str(built), str(tree)]
    environment = {**os.environ, "ANSIBLE_HOME": str(built / "home")}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
    return next(built.glob("bareon-allocator-*.tar.gz"))


def test_archive_holds_what_users_need_and_no_more(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        files = {member.name for member in opened.getmembers() if member.isfile()}
    assert {name.partition("/")[0] for name in files} == TOPS
    assert {name for name in files if name.startswith("tests/")} == {
        "tests/config.yml",
        *(f"tests/sanity/{path.name}" for path in (ROOT / "tests" / "sanity").iterdir()),
    }
    assert not [name for name in files if name.startswith(("docs/development/", "docs/site/", "changelogs/fragments/"))]
    for folder in ("plugins", "profiles", "roles", "playbooks", "docs/how_to", "docs/tutorials"):
        ours = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"}
        assert ours <= files


def test_links_of_the_archive_lead_to_files_of_the_archive(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        files = {member.name for member in opened.getmembers() if member.isfile()}
        pages = {name: opened.extractfile(name).read().decode() for name in files if name.endswith(".md")}  # type: ignore[union-attr]
    known = files | {str(folder) for name in files for folder in Path(name).parents}
    links = {
        (name, os.path.normpath(os.path.join(os.path.dirname(name), path)))
        for name, text in pages.items()
        for path in re.findall(r"\]\(([^)#\s]+)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
        if "://" not in path
    }
    assert not sorted((name, target) for name, target in links if target not in known)


def test_archive_is_not_large(archive: Path) -> None:
    kib = re.search(r"^most=\$\(\((\d+) \* 1024\)\)$", (ROOT / "tests/utils/build-release").read_text(encoding="utf-8"), re.MULTILINE)
    assert kib
    assert archive.stat().st_size <= int(kib[1]) * 1024
