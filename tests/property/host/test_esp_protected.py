# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shell script that keeps EFI system partitions alike writes to no disk that a run would keep as a protected one.

Both read the same list; the script may protect more. What tells the names of a disk is a stand-in here, which prints those that a run
compares with; tests/loop/test_esp_protected.py has lsblk.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._booting import esp_sync
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Filesystem
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import protections_of, read_protections
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import new_host
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

SERIAL, WWN, UUID = "S3Z8-NB0K1", "0x5000c500a1b2c3d4", "12ab-34cd"
LABELS = (
    "precious",
    "precious # 1",
    '"quoted"',
    "LABEL=odd",
    "caf\u00e9 data",
    "\u0434\u0430\u043d\u043d\u044b\u0435",
    "a.c",
    "[x]*",
    "a\\b",
)


class WithList(LocalHost):
    """This host with another file in the place of the list of protected disks."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read_setting(self, path: str) -> str | None:
        return super().read_setting(str(self._file))


def kept_by_run(file, label):
    """Whether a run writes nothing to a disk with this label: an entry protects it, or the list is a mistake."""
    present = new_host().present()
    disk = next(disk for disk in present.disks if disk.device.name == "sda")
    device = dataclasses.replace(
        disk.device, row={**disk.device.row, "serial": SERIAL, "wwn": WWN}, filesystem=Filesystem("xfs", UUID, label)
    )
    disk = dataclasses.replace(disk, device=device, source=device, paths=(device,))
    protections, mistakes = read_protections(WithList(file), ())
    return bool(mistakes or protections_of(disk, present.tree.with_devices([device]), protections))


def kept_by_script(file, label, folder):
    """Whether the script writes nothing to it; lsblk shows other than ASCII letters as numbers."""
    shown = "".join(f"\\x{byte:02x}" if byte > 0x7E else chr(byte) for byte in label.encode())
    names = ("sda", "/dev/sda", SERIAL, WWN, UUID, shown, "/dev/disk/by-id/wwn-sda", "wwn-sda")
    (folder / "all").write_text("".join(f"{name}\n" for name in names))
    text = esp_sync.TEXT
    begin, end = text.index("comparable() {"), text.index("# The old file stays open")
    script = f"export LC_ALL=C work={folder} protected={file}\n{text[begin:end]}\nnames() {{ cat {folder}/all; }}\nis_protected /dev/sda1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode in (0, 1)) == ("", True)
    return done.returncode == 0


@st.composite
def entries(draw, label):
    """A line that names the disk: with a tag, quotes, a comment, spaces, and letters in any of their forms."""
    link = f"/dev/disk/by-label/{label}".replace(" ", draw(st.sampled_from([" ", "\\x20"])))
    name = draw(
        st.sampled_from(
            [
                label,
                label.upper(),
                f"{label}\u200b",
                SERIAL,
                SERIAL.lower(),
                WWN,
                f"naa.{WWN[2:].upper()}",
                f"wwn-{WWN}",
                UUID,
                UUID.upper(),
                "/dev/sda",
                "wwn-sda",
                link,
            ]
        )
    )
    name = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), name)
    quoted = st.sampled_from(["{}", '"{}"', "'{}'"])
    tag = draw(st.sampled_from(["", "", "LABEL=", "uuid=", "SERIAL=", "Wwn="]))
    space = st.sampled_from(["", "", " ", "\t", "\u00a0", "\u2003"])
    comment = draw(st.sampled_from(["", "", " # mine", "\t#", "\u00a0# the database", "# no comment"]))
    return draw(space) + draw(quoted).format(tag + draw(quoted).format(name)) + draw(space) + comment


@given(st.data(), st.sampled_from(LABELS))
@settings(max_examples=examples(100), deadline=None)
def test_what_a_run_keeps_the_script_keeps(data, label):
    other = st.sampled_from(["# nothing", "", "sdb", "S3Z8NB0K", "previous", "{sdb", "*", "\u00e9t\u00e9"])
    lines = [data.draw(other), data.draw(entries(label)), data.draw(other)]
    between = data.draw(st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x85", "\x0c", "\x00"]))
    begin = data.draw(st.sampled_from(["", "\ufeff"]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "protected")
        file.write_bytes((begin + between.join(lines) + data.draw(st.sampled_from(["", "\n"]))).encode())
        assert kept_by_script(file, label, Path(folder)) >= kept_by_run(file, label)


@pytest.mark.parametrize(
    "text", ["", "# precious\n", "precious1\n/dev/sd\nS3Z8NB0K\n.*\n[a-z]*\n", "\u00e9t\u00e9\n", "LABEL=previous # precious\n", "sda1\n"]
)
def test_what_names_another_disk_keeps_none(tmp_path, text):
    file = tmp_path / "protected"
    file.write_text(text)
    assert not kept_by_script(file, "precious", tmp_path)
    assert not kept_by_run(file, "precious")


@pytest.mark.parametrize("kind", ["folder", "link to nothing", "fifo", "no text"])
def test_a_list_that_cannot_be_read_keeps_every_disk(tmp_path, kind):
    file = tmp_path / "protected"
    {
        "folder": file.mkdir,
        "link to nothing": lambda: file.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(file),
        "no text": lambda: file.write_bytes(b"a\x00b\n"),
    }[kind]()
    assert kept_by_script(file, "precious", tmp_path)
    assert kept_by_run(file, "precious")
