# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files on the controller: their modes, links that somebody has planted, and writes that are cut off."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import files
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.files import (
    create_file,
    make_folder,
    open_private,
    replace_file,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_cache import SharedCache
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_files import plan_files, write
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.lock import take, this_run
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger


def _use(path: Path) -> None:
    with open_ledger(f"sqlite:///{path}"):
        pass


WRITERS: dict[str, Callable[[Path], object]] = {
    "create_file": lambda path: create_file(path, "new"),
    "replace_file": lambda path: replace_file(path, "new"),
    "open_private": lambda path: os.close(open_private(path)),
    "plans": lambda path: write(plan_files(path.parent, {path.name.removesuffix(".json"): {"disks": []}})),
    "lock": lambda path: take(path.with_name(path.name.removesuffix(".lock")), this_run()),
    "ledger": _use,
}
NAMES = {"plans": "web1.json", "lock": "state.json.lock", "ledger": "ledger.sqlite"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """What is private must be so by itself."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("writer", WRITERS)
def test_files_and_folders_are_their_owners_alone(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "outer" / "inner" / NAMES.get(writer, "file")
    WRITERS[writer](path)
    assert mode(path) == 0o600
    assert [mode(folder) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
    assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    if writer != "ledger":
        assert list(path.parent.iterdir()) == [path], "a draft was left"


@pytest.mark.parametrize("writer", sorted(set(WRITERS) - {"create_file"}))
def test_what_exists_keeps_its_mode(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "folder" / NAMES.get(writer, "file")
    path.parent.mkdir(mode=0o755)
    path.touch(mode=0o640)
    WRITERS[writer](path)
    assert (mode(path), mode(path.parent)) == (0o640, 0o755)


@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("writer", sorted(set(WRITERS) - {"ledger"}))
def test_links_at_the_name_are_not_followed(tmp_path: Path, writer: str, dangling: bool) -> None:
    """A ledger is the exception: its owner may keep it elsewhere and link to it."""
    path, victim = tmp_path / NAMES.get(writer, "file"), tmp_path / "victim"
    if not dangling:
        victim.write_text("precious", encoding="utf-8")
    path.symlink_to(victim)
    try:
        WRITERS[writer](path)
    except Exception:  # Whatever it is that the writer says: it must not have written.
        assert path.is_symlink()
    else:
        assert not path.is_symlink()
        assert mode(path) == 0o600
    assert (victim.read_text(encoding="utf-8") if not dangling else victim.exists()) == ("precious" if not dangling else False)


@pytest.mark.parametrize("write_it", [create_file, replace_file])
def test_links_at_the_name_of_the_draft_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_it: Callable[..., None]) -> None:
    """Nobody can guess the name; whoever could would get an error, and not a file of ours."""
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    monkeypatch.setattr(files.secrets, "token_hex", lambda _bytes: "guessed")
    draft = tmp_path / ".file.guessed"
    for plant in (
        draft.touch,
        lambda: draft.symlink_to(victim),
        lambda: os.link(victim, draft),
        lambda: draft.symlink_to(tmp_path / "none"),
    ):
        plant()
        with pytest.raises(FileExistsError):
            write_it(tmp_path / "file", "secret")
        assert victim.read_text(encoding="utf-8") == "precious"
        assert not (tmp_path / "file").exists()
        draft.unlink()
    assert not (tmp_path / "none").exists()


def test_drafts_have_random_names_in_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Path, int, int]] = []
    open_of_os = os.open

    def noting(path: str | Path, flags: int, mode: int = 0o777, **how: object) -> int:
        opened.append((Path(path), flags, mode))
        return open_of_os(path, flags, mode)

    monkeypatch.setattr(files.os, "open", noting)
    for _time in range(2):
        replace_file(tmp_path / "file", "text")
    drafts = [one for one in opened if one[0] != tmp_path]
    assert len({path for path, _flags, _mode in drafts}) == 2
    for path, flags, wanted in drafts:
        assert path.parent == tmp_path
        assert flags & os.O_EXCL
        assert flags & os.O_NOFOLLOW
        assert wanted == 0o600


def test_a_write_that_is_cut_off_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    replace_file(path, "old")

    def cut(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", cut)
    for write_it in (replace_file, create_file):
        with pytest.raises(KeyboardInterrupt):
            write_it(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_on_its_medium_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    for place, name in ((files.os, "fsync"), (files.os, "link"), (Path, "replace")):
        done = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *given, name=name, done=done, **how: (events.append(name), done(*given, **how))[1])
    replace_file(tmp_path / "one", "text")
    create_file(tmp_path / "two", "text")
    assert events == ["fsync", "replace", "fsync", "fsync", "link", "fsync"]


def test_a_new_file_takes_nobodys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file", "new")

    def without_links(*_given: object, **_how: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(files.os, "link", without_links)
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file", "new")
    create_file(tmp_path / "other", "new")
    assert [(file.name, file.read_text(encoding="utf-8")) for file in sorted(tmp_path.iterdir())] == [("file", "old"), ("other", "new")]


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="."):
            make_folder(folder)


def test_the_shelf_of_a_run_is_private_too(tmp_path: Path) -> None:

    SharedCache(tmp_path / "shelf")._write(tmp_path / "shelf" / "name", [])
    assert mode(tmp_path / "shelf") == 0o700
    assert {mode(file) for file in (tmp_path / "shelf").iterdir()} == {0o600}
