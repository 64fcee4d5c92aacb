# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What our writers write is what the real readers read: libmount and systemd for fstab, systemd for crypttab, mdadm for its file."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.crypttab import Container, with_containers
from ansible_collections.bareon.allocator.plugins.module_utils._storage.fstab import Entry, read_entries, with_entries
from ansible_collections.bareon.allocator.plugins.module_utils._storage.mdadm_conf import ArrayLine, with_arrays
from ansible_collections.bareon.allocator.tests.loop.layout_runs import run

GENERATORS = Path("/lib/systemd/system-generators")
UUID = "8c2f2a9e-9a4c-4f0e-8a0e-5d4b6e1b7f10"
BEFORE = "### /etc/crypttab\n# of an admin: LABEL=x /y\n"


def generated(kind: str, table: Path, folder: Path) -> dict[str, str]:
    """The units that systemd makes of a table, by their names."""
    folder.mkdir()
    subprocess.run(
        [GENERATORS / f"systemd-{kind}-generator", folder, folder, folder],
        env={**os.environ, "SYSTEMD_FSTAB": str(table), "SYSTEMD_CRYPTTAB": str(table)},
        check=True,
        capture_output=True,
    )
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()}


def unescaped(text: str) -> str:
    """What a field of a unit means: `%%` is `%`."""
    return text.replace("%%", "%")


PATHS = [
    *("/srv/data", "/srv/with blank", "/srv/a#b", "/srv/back\\slash", "/srv/tab\there", "/srv/100%i"),
    *("/srv/\u00fc\u00a0x", "/srv/\\040", "/srv/'q\""),
]


@pytest.mark.parametrize("place", PATHS)
def test_fstab(place: str, tmp_path: Path) -> None:
    table = tmp_path / "fstab"
    entries = [Entry(f"UUID={UUID}", place, "ext4", "noatime,nofail"), Entry("LABEL=b\\c#d", "/srv/labelled", "xfs", "nofail")]
    table.write_text(with_entries(BEFORE, entries), encoding="utf-8")
    read = json.loads(run("findmnt", "--fstab", "--tab-file", str(table), "--json", "-o", "SOURCE,TARGET,FSTYPE,OPTIONS"))["filesystems"]
    assert [(one["source"], one["target"], one["fstype"], one["options"]) for one in read] == [
        (entry.src, entry.path, entry.fstype, entry.opts) for entry in entries
    ]
    assert read_entries(table.read_text(encoding="utf-8")) == entries
    mounts = [text for name, text in generated("fstab", table, tmp_path / "units").items() if name.endswith(".mount")]
    assert {unescaped(re.search(r"^Where=(.*)$", text, re.MULTILINE)[1]) for text in mounts} == {entry.path for entry in entries}


@pytest.mark.parametrize("key_file", ["none", "/etc/keys/data.key", "/etc/keys/a%i#b,c", "/etc/keys/\u00fc"])
def test_crypttab(key_file: str, tmp_path: Path) -> None:
    table = tmp_path / "crypttab"
    container = Container("data-1", f"UUID={UUID}", key_file, "luks,discard,x-initrd.attach")
    table.write_text(with_containers(BEFORE, [container]), encoding="utf-8")
    (unit,) = [text for name, text in generated("cryptsetup", table, tmp_path / "units").items() if name.startswith("systemd-cryptsetup@")]
    words = re.search(r"^ExecStart=\S+ attach '(.*)' '(.*)' '(.*)' '(.*)'$", unit, re.MULTILINE)
    assert words is not None
    name, device, key, options = map(unescaped, words.groups())
    assert (name, device) == ("data-1", f"/dev/disk/by-uuid/{UUID}")
    assert key == key_file
    assert "discard" in options.split(",")


def test_mdadm_conf(tmp_path: Path) -> None:
    """mdadm names each line that it does not know."""
    file = tmp_path / "mdadm.conf"
    file.write_text(with_arrays("# mine\nDEVICE /dev/null\n", [ArrayLine("/dev/md/data_1.x", "01234567:89abcdef:00112233:44556677")]))
    done = subprocess.run(["mdadm", "--assemble", "--scan", "--verbose", f"--config={file}"], capture_output=True, text=True, check=False)
    assert "nknown" not in done.stderr
    assert "/dev/md/data_1.x" in done.stdout + done.stderr
