# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/apply.yml on loop devices of this machine: as a new system in a folder, so that this machine's own tables are left alone."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._erase.record import FOLDER
from ansible_collections.bareon.allocator.tests.loop.layout_runs import leave_descriptors_in_the_journal

ROOT = pathlib.Path(__file__).parents[2]
MIB = 1024**2
RECAP = re.compile(r"^localhost +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=(\d+)", re.MULTILINE)
PROFILE = """---
- {id: boot, type: partition, size: 200, mount: /boot, fs_type: ext4, boot: true, disks: yaql=$.disks.take(1)}
- {id: root, type: partition, min_size: 400, mount: /, fs_type: ext4, fs_label: root, disks: yaql=$.disks.take(1)}
- {id: data, type: partition, per_disk: true, min_size: 400, mount: /data, fs_type: xfs}
"""

Plain = dict[str, t.Any]


class Applied(t.NamedTuple):
    """What a run of the playbook came to."""

    changed: int
    failed: int
    text: str


class Bed:
    """A folder to install into, and disks."""

    def __init__(self, folder: pathlib.Path, hardware: Plain) -> None:
        self.folder = folder
        self.target = folder / "target"
        self.hardware = hardware
        self.disks = [disk["dev"] for disk in hardware["disks"]]
        (folder / "profile.yml").write_text(PROFILE, encoding="utf-8")

    def apply(self, *options: str, playbook: str = "apply", start_in: pathlib.Path = ROOT, **variables: t.Any) -> Applied:
        given = {
            **({} if "bareon_plans" in variables and playbook == "apply" else {"bareon_profile": str(self.folder / "profile.yml")}),
            "bareon_devices": self.disks,
            "bareon_include": ["loop"],
            "bareon_root": str(self.target),
            "bareon_new_system": True,
            "bareon_become": False,
            "ansible_python_interpreter": sys.executable,
            **variables,
        }
        command = [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "--inventory",
            "localhost,",
            "--connection",
            "local",
            f"bareon.allocator.{playbook}",
        ]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(self.folder), "ANSIBLE_NOCOLOR": "1"}
        environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections")}
        done = subprocess.run(
            [*command, *options, "--extra-vars", json.dumps(given)],
            cwd=start_in,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        recap = RECAP.search(done.stdout)
        assert recap is not None, done.stdout + done.stderr
        return Applied(int(recap[1]), int(recap[2]), done.stdout + done.stderr)

    def written(self) -> int:
        """Return how many bytes of the files behind the disks have ever been written."""
        files = [output("losetup", "--noheadings", "--output", "BACK-FILE", disk).strip() for disk in self.disks]
        return sum(os.stat(file).st_blocks for file in files) * 512

    def unmount(self) -> None:
        subprocess.run(["umount", "--recursive", str(self.target)], capture_output=True, check=False)


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def bed(loops, tmp_path):
    made = Bed(tmp_path, loops.hardware([1500 * MIB, 1200 * MIB]))
    yield made
    made.unmount()


def mounts(target: pathlib.Path) -> dict[str, tuple[str, str]]:
    """Return mount point to file system and device, as findmnt knows them."""
    found = output("findmnt", "--raw", "--noheadings", "--output", "TARGET,FSTYPE,SOURCE")
    lines = [line.split() for line in found.splitlines()]
    return {line[0]: (line[1], line[2]) for line in lines if line[0].startswith(str(target))}


def test_shown_then_applied_then_nothing_to_do(bed):
    shown = bed.apply("--check", "--diff")
    assert shown.failed == 0, shown.text
    assert bed.written() == 0
    assert mounts(bed.target) == {}
    assert not bed.target.exists()

    applied = bed.apply("--diff")
    assert (applied.failed, applied.changed > 0) == (0, True), applied.text
    steps = [line for line in applied.text.splitlines() if line.startswith(("write a new partition table", "make "))]
    assert len(steps) > 5
    assert [line for line in steps if line not in shown.text] == []

    first, second = bed.disks
    found = mounts(bed.target)
    top = str(bed.target)
    assert {place: kind for place, (kind, _device) in found.items()} == {
        top: "ext4",
        f"{top}/boot": "ext4",
        f"{top}/data1": "xfs",
        f"{top}/data2": "xfs",
    }
    assert found[f"{top}/data2"][1].startswith(second)
    assert output("blkid", "--probe", "--match-tag", "LABEL", "--output", "value", found[top][1]).strip() == "root"
    tables = [json.loads(output("sfdisk", "--json", disk))["partitiontable"] for disk in (first, second)]
    starter = "esp" if pathlib.Path("/sys/firmware/efi").exists() else "bios_grub"
    assert [[part["name"] for part in table["partitions"]] for table in tables] == [[starter, "boot", "root", "data"], ["data"]]

    lines = [line.split() for line in (bed.target / "etc/fstab").read_text(encoding="utf-8").splitlines()]
    assert [(line[1], line[2], line[5]) for line in lines if line[1] != "/boot/efi"] == [
        ("/", "ext4", "1"),
        ("/boot", "ext4", "2"),
        ("/data1", "xfs", "0"),
        ("/data2", "xfs", "0"),
    ]
    for line in lines:
        device = found.get(f"{top}{line[1].rstrip('/')}", ("", ""))[1]
        if device:
            assert line[0] == f"UUID={output('blkid', '--probe', '--match-tag', 'UUID', '--output', 'value', device).strip()}"

    (bed.target / "data2" / "kept").write_text("data", encoding="utf-8")
    again = bed.apply("--diff")
    assert (again.changed, again.failed) == (0, 0), again.text
    bed.unmount()
    mounted_again = bed.apply()
    assert (mounted_again.changed, mounted_again.failed) == (1, 0), mounted_again.text
    assert (bed.target / "data2" / "kept").read_text(encoding="utf-8") == "data"


def test_a_plan_is_kept_reviewed_and_carried_out_as_it_is(bed):
    plans = bed.folder / "plans"
    planned = bed.apply(playbook="plan", bareon_known_hardware=bed.hardware, bareon_plans=str(plans), start_in=bed.folder)
    assert planned.failed == 0, planned.text
    plan = json.loads((plans / "localhost.json").read_text(encoding="utf-8"))
    assert plan["fingerprint"]
    assert bed.written() == 0
    # What was reviewed counts, not what the profile would give today.
    (bed.folder / "profile.yml").write_text("[]", encoding="utf-8")
    both = bed.apply(bareon_plans=str(plans), bareon_overrides=[], disk_layout_profile="general")
    assert (both.failed, bed.written()) == (1, 0), both.text
    missing = bed.apply(bareon_plans=str(bed.folder / "none"))
    assert (missing.failed, bed.written()) == (1, 0), missing.text
    applied = bed.apply(bareon_plans="plans", start_in=bed.folder)
    assert applied.failed == 0, applied.text
    tables = [json.loads(output("sfdisk", "--json", disk))["partitiontable"] for disk in bed.disks]
    assert [len(table["partitions"]) for table in tables] == [len(parted["partitions"]) for parted in plan["schema"]["parteds"]]
    again = bed.apply("--diff", bareon_plans=str(plans))
    assert (again.changed, again.failed) == (0, 0), again.text


def test_the_layout_that_is_there_is_a_schema(bed):
    assert bed.apply().failed == 0
    before = [first_bytes(disk) for disk in bed.disks]
    read = ad_hoc("disk_layout_info", {"disks": bed.disks}, bed.folder)
    assert (read["changed"], read["steps"]) == (False, [])
    assert sorted(parted["name"] for parted in read["schema"]["parteds"]) == sorted(bed.disks)
    assert {found["type"] for found in read["filesystems"]} >= {"ext4", "xfs"}
    again = ad_hoc("disk_layout", {"schema": read["schema"]}, bed.folder)
    assert (again["changed"], again["steps"]) == (False, [])
    assert [first_bytes(disk) for disk in bed.disks] == before
    assert "/dev/nothing" in ad_hoc("disk_layout_info", {"disks": ["/dev/nothing"]}, bed.folder)["msg"]
    assert "wipe" in ad_hoc("disk_layout_info", {"wipe": bed.disks}, bed.folder)["msg"]


def test_disks_are_erased_and_the_records_written(bed):
    kept = set(pathlib.Path(FOLDER).glob("*"))
    assert bed.apply().failed == 0
    bed.unmount()
    options = {"playbook": "erase", "bareon_erase": bed.disks, "start_in": bed.folder}
    expected = bed.apply("--check", **options)
    assert expected.failed == 0, expected.text
    assert any(first_bytes(disk) != bytes(2 * MIB) for disk in bed.disks)
    protected = bed.apply(**options, bareon_protect=[bed.disks[0]])
    assert protected.failed == 1, protected.text
    assert not (bed.folder / "erased").exists()

    erased = bed.apply(**options, bareon_title="Rack 7")
    assert erased.failed == 0, erased.text
    assert all(first_bytes(disk) == bytes(2 * MIB) for disk in bed.disks)
    records = json.loads((bed.folder / "erased" / "localhost.json").read_text(encoding="utf-8"))
    assert {record["disk"] for record in records} == set(bed.disks)
    page = (bed.folder / "erased.html").read_text(encoding="utf-8")
    assert "<h1>Rack 7</h1>" in page
    assert all(disk in page for disk in bed.disks)
    again = bed.apply("--diff", **options, bareon_title="Rack 7")
    assert (again.changed, again.failed) == (0, 0), again.text
    for file in set(pathlib.Path(FOLDER).glob("*")) - kept:
        file.unlink()


def first_bytes(disk: str) -> bytes:
    with pathlib.Path(disk).open("rb") as file:
        return file.read(2 * MIB)


def ad_hoc(module: str, options: Plain, folder: pathlib.Path) -> Plain:
    """Return the result of a module on this machine, as one task of a person who needs no playbook."""
    environment = {**os.environ, "ANSIBLE_HOME": str(folder), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true"}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.oneline"}
    command = [sys.executable, "-m", "ansible", "adhoc", "--inventory", "localhost,", "--connection", "local", "localhost"]
    python = ["--extra-vars", f"ansible_python_interpreter={sys.executable}"]
    words = [*command, *python, "--module-name", f"bareon.allocator.{module}", "--args", json.dumps(options)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return t.cast("Plain", json.loads(done.stdout[done.stdout.index("{") :]))


def test_a_new_system_is_mounted_though_a_cut_left_an_ext4_half_grown(bed):
    assert bed.apply().failed == 0
    device = mounts(bed.target)[str(bed.target)][1]
    (bed.target / "kept").write_text("data", encoding="utf-8")
    bed.unmount()
    leave_descriptors_in_the_journal(device)
    again = bed.apply()
    assert (again.changed, again.failed) == (1, 0), again.text
    assert (bed.target / "kept").read_text(encoding="utf-8") == "data"


def test_a_disk_with_something_on_it_takes_a_word(bed):
    first, second = bed.disks
    subprocess.run(["mkfs.ext4", "-q", "-L", "precious", second], check=True)
    refused = bed.apply()
    assert (refused.changed, refused.failed) == (0, 1)
    assert "precious" in refused.text
    assert output("blkid", "--probe", "--match-tag", "LABEL", "--output", "value", second).strip() == "precious"
    assert subprocess.run(["blkid", "--probe", first], capture_output=True, check=False).returncode == 2, "nothing is half done"
    shown = bed.apply("--check", bareon_wipe=[second])
    assert "precious" in shown.text
    other = bed.apply(bareon_wipe=[second], bareon_confirm="0" * 32)
    assert (other.changed, other.failed) == (0, 1)
    digest = re.search(r"digest of what would be\s+destroyed now is\s+([0-9a-f]{32})", other.text)
    assert digest is not None, other.text
    allowed = bed.apply(bareon_wipe=[second], bareon_confirm=digest[1])
    assert allowed.failed == 0, allowed.text
    assert f"{bed.target}/data2" in mounts(bed.target)


def test_what_would_not_start_is_refused_before_the_first_step(bed):
    without = [{"id": "boot", "boot": False}]
    refused = bed.apply(playbook="install", bareon_overrides=without, bareon_image="/nowhere/image.tar")
    assert (refused.changed, refused.failed) == (0, 1), refused.text
    told = " ".join(refused.text.split())
    assert "localhost starts by " in told
    assert "This line of the profile or of its overrides adds what it lacks: - {id: boot, boot: true}" in told
    assert bed.written() == 0
    assert not bed.target.exists()
    allowed = bed.apply("--check", playbook="install", bareon_overrides=without, bareon_boot=False)
    assert allowed.failed == 0, allowed.text


def archive(folder: pathlib.Path, name: str, *files: str) -> str:
    for file in files:
        (folder / "system" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "system" / file).touch()
    path = folder / name
    output("tar", "--create", "--gzip", f"--file={path}", f"--directory={folder / 'system'}", ".")
    return str(path)


def test_what_is_used_later_is_looked_at_before_anything_is_written(bed, tmp_path):
    """Files are found where the playbook was started."""
    whole = archive(tmp_path, "whole.tar.gz", "boot/vmlinuz-6.1", "etc/hostname")
    cut_off = tmp_path / "cut-off.tar.gz"
    cut_off.write_bytes(pathlib.Path(whole).read_bytes()[:-30])
    (tmp_path / "good.yml").write_text("- name: Never here\n  ansible.builtin.command: touch /target-was-touched\n", encoding="utf-8")
    bed.target.write_text("a file", encoding="utf-8")
    refused = bed.apply(playbook="install", bareon_image=whole, bareon_boot=False)
    assert f"disk_layout_root {bed.target} is there and is no directory" in " ".join(refused.text.split())
    bed.target.unlink()
    for said, given in (
        ("/nowhere/image.tar cannot be read: No such file or directory", {"bareon_image": "/nowhere/image.tar"}),
        ("cut-off.tar.gz is not an archive of a root file system that can be read to its end", {"bareon_image": str(cut_off)}),
        ("missing.yml", {"bareon_install_tasks": str(tmp_path / "missing.yml")}),
    ):
        refused = bed.apply(playbook="install", **given)
        assert (refused.changed, refused.failed) == (0, 1), refused.text
        assert said in " ".join(refused.text.split()), refused.text
    assert (bed.written(), bed.target.exists()) == (0, False)
    tasks = str(tmp_path / "good.yml")
    beside = {"bareon_profile": "profile.yml", "bareon_image": "whole.tar.gz", "bareon_install_tasks": tasks}
    allowed = bed.apply("--check", playbook="install", start_in=tmp_path, **beside)
    assert allowed.failed == 0, allowed.text
    assert not pathlib.Path("/target-was-touched").exists()


def test_the_running_root_is_not_mounted_over(bed):
    refused = bed.apply(bareon_root="/", bareon_new_system=False)
    assert (refused.changed, refused.failed) == (0, 1)
    assert "something that is not on the disks of the layout is mounted there" in " ".join(refused.text.split())
    assert bed.written() == 0
