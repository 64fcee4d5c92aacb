# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users install: the archive holds all that they need, nothing that is only for tests, and is not large."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support import repack
from ansible_collections.bareon.allocator.tests.support.house.archive import built_archive

ROOT = Path(__file__).resolve().parents[2]
TOPS = {
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "SECURITY.md", "requirements.txt"),
    *(f"requirements-{part}.txt" for part in ("disks", "groups", "ledger", "proxmox")),
    *("changelogs", "docs", "extensions", "meta", "playbooks", "plugins", "roles", "tests"),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive of the files that belong to the project."""
    return built_archive(tmp_path_factory.mktemp("built"))


def test_archive_holds_what_users_need_and_no_more(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        files = {member.name for member in opened.getmembers() if member.isfile()}
    assert {name.partition("/")[0] for name in files} == TOPS
    assert {name for name in files if name.startswith("tests/")} == {
        "tests/config.yml",
        *(f"tests/sanity/{path.name}" for path in (ROOT / "tests" / "sanity").iterdir()),
    }
    assert not [name for name in files if name.startswith(("docs/development/", "docs/site/", "changelogs/fragments/"))]
    guides = {str(path.relative_to(ROOT)) for folder in (".", "how_to", "tutorials") for path in (ROOT / "docs" / folder).glob("*.md")}
    assert {*guides, "changelogs/changelog.yaml", "extensions/execution_environment/execution-environment.yml"} <= files
    for folder in ("plugins", "roles", "playbooks", "docs/schemas"):
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


def most(kind: str) -> int:
    """Return how many bytes an archive of that kind may have, as those who make a release are told."""
    found = re.search(rf"^most_{kind}=(\d+)$", (ROOT / "tests/utils/build-release").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return int(found[1])


@pytest.fixture(scope="module")
def small(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive that users are told to take."""
    packed = tmp_path_factory.mktemp("small") / archive.with_suffix(".xz").name
    packed.write_bytes(repack.as_xz(repack.normalised(archive, 1_700_000_000)))
    return packed


def test_archives_are_not_large(archive: Path, small: Path) -> None:
    assert small.stat().st_size <= most("xz") <= 1_300_000
    assert archive.stat().st_size <= most("gz")


def test_the_small_archive_installs_with_all_its_files(archive: Path, small: Path, tmp_path: Path) -> None:
    install = ["collection", "install", "--offline", "--no-deps", "--collections-path", str(tmp_path), str(small)]
    command = [sys.executable, "-m", "ansible", "galaxy", *install]
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_COLLECTIONS_PATH": str(tmp_path)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
    installed = tmp_path / "ansible_collections" / "bareon" / "allocator"
    with tarfile.open(archive) as opened:
        for member in opened.getmembers():
            if member.isfile() and member.name not in ("FILES.json", "MANIFEST.json"):
                assert (installed / member.name).read_bytes() == opened.extractfile(member).read()  # type: ignore[union-attr]
                assert bool((installed / member.name).stat().st_mode & 0o100) == bool(member.mode & 0o100)


def test_archives_do_not_depend_on_the_order_and_the_owner_of_files(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / archive.name
    with tarfile.open(archive) as opened, tarfile.open(other, "w:gz", compresslevel=1) as written:
        content = {member.name: file.read() if (file := opened.extractfile(member)) else b"" for member in opened.getmembers()}
        files, manifest = json.loads(content["FILES.json"]), json.loads(content["MANIFEST.json"])
        files["files"].reverse()
        content["FILES.json"] = repack.written(files)
        manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(content["FILES.json"]).hexdigest()
        content["MANIFEST.json"] = repack.written(manifest)
        for member in reversed(opened.getmembers()):
            member.uid, member.uname, member.mtime, member.size = 1000, "somebody", 1, len(content[member.name])
            written.addfile(member, io.BytesIO(content[member.name]))
    assert repack.normalised(other, 7) == repack.normalised(archive, 7)
