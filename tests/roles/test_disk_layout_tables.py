# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables that the role disk_layout writes: lines of others stay, what changes is kept as it was beside it, modes stay.

The layout is one that was made and mounted, in words only, and the tables are those of a system in a folder; nothing is mounted.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.results_as_json import RESULTS_AS_JSON

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.short, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of a system are root's")]

UUID = "8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f1"
SCHEMA = {
    "mds": [{"name": "/dev/md/data", "level": "raid1", "devices": ["/dev/sda1", "/dev/sdb1"]}],
    "luks": [{"name": "data-crypt", "device": "/dev/md/data"}],
    "fss": [
        {"device": "/dev/mapper/data-crypt", "mount": "/srv", "fs_type": "ext4"},
        {"device": "/dev/a", "mount": "swap", "fs_type": "swap"},
    ],
}
BEFORE = {
    "etc/fstab": ("# mine\nLABEL=image-root / ext4 defaults 0 1\ntmpfs /tmp tmpfs defaults 0 0\n", 0o640),
    "etc/crypttab": ("other UUID=1 /etc/keys/other luks\n", 0o600),
    "etc/mdadm/mdadm.conf": ("MAILADDR root\nARRAY /dev/md/old metadata=1.2 UUID=0:0:0:0\n", 0o604),
}
AFTER = {
    "etc/fstab": [
        "# mine",
        "# of the image: LABEL=image-root / ext4 defaults 0 1",
        "tmpfs /tmp tmpfs defaults 0 0",
        f"UUID={UUID}1 /srv ext4 defaults,nofail 0 2",
        f"UUID={UUID}2 none swap defaults 0 0",
    ],
    "etc/crypttab": ["other UUID=1 /etc/keys/other luks", f"data-crypt UUID={UUID}3 none luks,nofail"],
    "etc/mdadm/mdadm.conf": [
        "MAILADDR root",
        "ARRAY /dev/md/old metadata=1.2 UUID=0:0:0:0",
        "ARRAY /dev/md/data metadata=1.2 UUID=8c2f2a9e:9a4c5f0e:8a0e5d4b:6e1b7f14",
    ],
}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A system in a folder, of Debian, with users of its own."""
    folder = tmp_path / "target"
    (folder / "etc").mkdir(parents=True)
    (folder / "srv").mkdir()
    (folder / "etc/os-release").write_text("ID=debian\n", encoding="utf-8")
    (folder / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nowner-of-data:x:4711:4712::/:/bin/sh\n", encoding="utf-8")
    (folder / "etc/group").write_text("root:x:0:\nreaders-of-data:x:4713:\n", encoding="utf-8")
    return folder


def run(target: Path, **more: t.Any) -> tuple[int, int, str]:
    """Have the role write the tables; return the exit code, how many tasks changed something, and the failures' messages."""
    code, said = played(target, ("facts", "mount"), **more)
    results = [result for task in said["tasks"] for result in task["hosts"].values()]
    return code, said["stats"]["localhost"]["changed"], "\n".join(one["msg"] for one in results if one.get("failed"))


def played(target: Path, names: t.Sequence[str], *options: str, **more: t.Any) -> tuple[int, dict[str, t.Any]]:
    """Have the role do its parts of these names; return the exit code, and all that the run said."""
    result = {
        "changed": False,
        "schema": SCHEMA,
        "filesystems": [
            {"device": "/dev/mapper/data-crypt", "uuid": f"{UUID}1", "mountpoints": [f"{target}/srv"]},
            {"device": "/dev/a", "uuid": f"{UUID}2", "mountpoints": []},
        ],
        "containers": [{"name": "data-crypt", "uuid": f"{UUID}3", "unlock": []}],
        "arrays": [{"name": "/dev/md/data", "uuid": f"{UUID}4"}],
    }
    given = {
        "disk_layout_result": result,
        "disk_layout_hardware": {"disks": []},
        "disk_layout_static": SCHEMA,
        "disk_layout_root": str(target),
        "disk_layout_new_system": True,
        "disk_layout_nofail": ["/srv"],
        "ansible_python_interpreter": sys.executable,
        **more,
    }
    parts = [{"ansible.builtin.include_role": {"name": "bareon.allocator.disk_layout", "tasks_from": name}} for name in names]
    play = target.parent / "play.yml"
    play.write_text(json.dumps([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": parts}]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "--inventory", "localhost,", "--extra-vars", json.dumps(given), *options, str(play)],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **RESULTS_AS_JSON},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, json.loads(done.stdout)


def lines(target: Path) -> dict[str, list[str]]:
    return {name: (target / name).read_text(encoding="utf-8").splitlines() for name in AFTER}


def modes(target: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((target / name).stat().st_mode) for name in AFTER}


def copies(target: Path, name: str) -> list[Path]:
    return sorted((target / name).parent.glob(f"{Path(name).name}.*~"))


def test_the_accounts_of_a_target_say_no_more_than_numbers(target: Path) -> None:
    """`echo` of Debian's shell makes lines of what is written as `\\n`, and an image could add to what the host says of itself."""
    points = [{"path": "/srv", "owner": "owner-of-data", "group": "readers-of-data"}]
    (target / "etc/passwd").write_text(
        "owner-of-data:x:4711\\ntarget is unpacked\\ntool /usr/sbin/made-up:4712::/:/bin/sh\n", encoding="utf-8"
    )
    (target / "etc/group").write_text("readers-of-data:x:4713\\041\\0nrunning selinux:\n", encoding="utf-8")
    code, said = played(target, ["facts"], disk_layout_mount_points=points)
    assert code == 0
    named = "Read the tables of mounts, and which tools there are"
    read = next(task["hosts"]["localhost"]["stdout_lines"] for task in said["tasks"] if task["name"].endswith(named))
    assert "accounts known" in read
    assert {line.split()[0] for line in read} <= {"tool", "running", "system", "target", "accounts", "user", "group", "file"}
    assert not {"target is unpacked", "tool /usr/sbin/made-up"} & set(read)
    assert not [line for line in read if line.startswith(("user", "group")) and not line.split()[-1].isdigit()]


def test_lines_of_others_modes_and_what_was_there_stay(target: Path) -> None:
    for name, (text, mode) in BEFORE.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
        (target / name).chmod(mode)

    assert run(target)[0] == 0
    assert lines(target) == AFTER
    assert modes(target) == {name: mode for name, (_text, mode) in BEFORE.items()}
    for name, (text, mode) in BEFORE.items():
        kept = [copy for copy in copies(target, name) if copy.read_text(encoding="utf-8") == text]
        assert kept, f"{name} as it was is not kept"
        assert {stat.S_IMODE(copy.stat().st_mode) for copy in kept} == {mode}

    had = {name: copies(target, name) for name in BEFORE}
    assert run(target) == (0, 0, "")
    assert {name: copies(target, name) for name in BEFORE} == had
    assert not (target / ".autorelabel").exists()


def test_tables_that_are_not_there_are_made_for_all_to_read_and_owners_are_those_of_the_new_system(target: Path) -> None:
    points = [{"path": "/srv", "owner": "owner-of-data", "group": "readers-of-data", "mode": "0750"}]
    code, changed, said = run(target, disk_layout_mount_points=points)
    assert (code, said) == (0, "")
    assert changed > 0
    assert [lines(target)[name][-1] for name in AFTER] == [wanted[-1] for wanted in AFTER.values()]
    assert modes(target) == dict.fromkeys(AFTER, 0o644)
    found = (target / "srv").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (4711, 4713, 0o750)

    code, _changed, said = run(target, disk_layout_mount_points=[{"path": "/srv", "owner": "nobody-knows"}])
    assert code != 0
    assert said == (
        f"mount_points: there is no user nobody-knows, which is to be owner of /srv in {target}. "
        "Take it out, or make it in disk_layout_install_tasks."
    )


def test_a_new_system_with_selinux_labels_its_files_once(target: Path) -> None:
    (target / "etc/selinux").mkdir()
    (target / "etc/selinux/config").touch()
    assert run(target)[0] == 0
    (target / ".autorelabel").unlink()
    assert run(target) == (0, 0, "")
    assert not (target / ".autorelabel").exists()


def test_marks_of_a_new_system_are_in_no_other_place(target: Path, tmp_path: Path) -> None:
    """What an image has under their names may lead to files of the running system, of any form."""
    (target / "etc/selinux").mkdir()
    (target / "etc/selinux/config").touch()
    mine = tmp_path / "of_the_running_system"
    mine.mkdir(mode=0o700)
    (mine / "file").write_text("mine\n", encoding="utf-8")
    (mine / "file").chmod(0o600)
    for place in (mine / "file", mine, mine / "none"):
        (target / ".autorelabel").unlink(missing_ok=True)
        (target / "etc/fstab").unlink(missing_ok=True)
        (target / ".autorelabel").symlink_to(place)
        assert run(target)[0] == 0
        assert [(target / ".autorelabel").is_symlink(), (target / ".autorelabel").read_bytes()] == [False, b""]
        assert [path.name for path in mine.iterdir()] == ["file"]
        assert ((mine / "file").read_text(encoding="utf-8"), stat.S_IMODE((mine / "file").stat().st_mode)) == ("mine\n", 0o600)


def packed(folder: Path, *members: tuple[str, str]) -> Path:
    """Write an archive of members, each (name, target of a link or nothing for a file); return it."""
    with tarfile.open(folder / "image.tar", "w") as archive:
        for name, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
            archive.addfile(member)
    return folder / "image.tar"


def unpacked(target: Path, image: Path) -> int:
    """Have the role unpack an image and note that it is complete; return the exit code."""
    files = {"disk_layout_host_files": {"mounts": []}}
    return played(target, ["facts", "unpack_image"], disk_layout_image=str(image), **files)[0]


@pytest.mark.parametrize("prefix", ["", "./"])
def test_the_note_that_an_image_brings_says_nothing_of_this_system(target: Path, tmp_path: Path, prefix: str) -> None:
    note = target / "var/lib/bareon.allocator/unpacked"
    assert unpacked(target, packed(tmp_path, (f"{prefix}var/lib/bareon.allocator/unpacked", ""), (f"{prefix}etc/of_the_image", ""))) == 0
    assert (target / "etc/of_the_image").exists()
    assert note.read_text(encoding="utf-8") == "image.tar\n"


@pytest.mark.parametrize("folder", [".//var/lib/bareon.allocator", "var/./lib//bareon.allocator"])
def test_an_image_that_was_unpacked_in_part_is_unpacked_again_whatever_note_it_brings(target: Path, tmp_path: Path, folder: str) -> None:
    image = packed(tmp_path, (f"{folder}/unpacked", ""), ("etc/of_the_image", ""))
    whole = image.read_bytes()
    # The second header has a length, but no contents follow.
    member = tarfile.TarInfo("etc/cut")
    member.size = 5000
    image.write_bytes(whole[:512] + member.tobuf())
    assert unpacked(target, image) != 0
    assert (target / "var/lib/bareon.allocator/unpacked").exists()
    assert not (target / "etc/of_the_image").exists()
    image.write_bytes(whole)
    assert unpacked(target, image) == 0
    assert (target / "etc/of_the_image").exists()
    assert (target / "var/lib/bareon.allocator/unpacked").read_text(encoding="utf-8") == "image.tar\n"
    assert not (target / ".bareon-unpacking").exists()
    (target / "etc/of_the_image").unlink()
    assert unpacked(target, image) == 0
    assert not (target / "etc/of_the_image").exists()


@pytest.mark.parametrize("link", ["var", "var/lib", "var/lib/bareon.allocator", "var/lib/bareon.allocator/unpacked.new"])
def test_the_note_leads_to_no_place_of_the_running_system(target: Path, tmp_path: Path, link: str) -> None:
    mine = tmp_path / "of_the_running_system"
    mine.mkdir()
    for path in ("unpacked.new", "lib"):
        (mine / path).write_text("mine\n", encoding="utf-8")
        (mine / path).chmod(0o600)
    is_file = link.endswith("new")
    code = unpacked(target, packed(tmp_path, (link, str(mine / "unpacked.new" if is_file else mine))))
    # What the archive has in the place of the note itself is left out.
    assert (code == 0) == ("bareon" in link)
    assert {path.name: (path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)) for path in mine.iterdir()} == dict.fromkeys(
        ("unpacked.new", "lib"), ("mine\n", 0o600)
    )


@pytest.mark.parametrize(("read", "labelled"), [(["running selinux"], ["/srv/new"]), ([], [])])
def test_what_is_mounted_anew_gets_its_labels_where_the_kernel_runs_selinux(target: Path, read: list[str], labelled: list[str]) -> None:
    """In check mode, which tells the command and does nothing: no kernel here has SELinux."""
    schema = {"fss": [{"device": f"/dev/{name}", "mount": f"/srv/{name}", "fs_type": "xfs"} for name in ("new", "old")]}
    filesystems = [
        {"device": "/dev/new", "uuid": f"{UUID}1", "mountpoints": []},
        {"device": "/dev/old", "uuid": f"{UUID}2", "mountpoints": ["/srv/old"]},
    ]
    known = ["tool /usr/sbin/restorecon", *read]
    host = {"stdout": "\n".join(known), "stdout_lines": known}
    layout = {"schema": schema, "filesystems": filesystems, "containers": [], "arrays": []}
    options = {"disk_layout_root": "/", "disk_layout_new_system": False, "disk_layout_nofail": []}
    code, said = played(target, ["mount"], "--check", disk_layout_host=host, disk_layout_result=layout, **options)
    assert code == 0
    (task,) = [task for task in said["tasks"] if "SELinux" in task["name"]]
    commands = [item["cmd"] for item in task["hosts"]["localhost"].get("results", []) if "cmd" in item]
    assert commands == [["restorecon", "-R", place] for place in labelled]


def test_the_os_release_of_a_target_is_read_and_never_run(target: Path, tmp_path: Path) -> None:
    """An image can come from anywhere."""
    proof = tmp_path / "ran"
    (target / "etc" / "os-release").write_text(
        f'PRETTY_NAME=$(touch {proof})\ntouch {proof}\nID_LIKE="rhel `touch {proof}`"\nID=\'rocky\'\nID_LIKE="rhel centos"\n',
        encoding="utf-8",
    )
    code, said = played(target, ["facts"])
    assert code == 0
    read = next(
        task["hosts"]["localhost"]["stdout_lines"]
        for task in said["tasks"]
        if task["name"].endswith("Read the tables of mounts, and which tools there are")
    )
    assert "target rocky rhel centos" in read
    assert not proof.exists()
