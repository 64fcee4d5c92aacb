# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file that later runs need, and that would be gone with the container of its job, is a warning wherever one is written."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import lasting
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.lasting import loss_warnings, why_lost

MOUNTS = """\
21 1 0:45 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u
22 21 254:1 /volumes/state /srv/the\\040state rw,relatime - ext4 /dev/vda1 rw
23 22 0:50 / /srv/the\\040state/short rw shared:7 master:3 - tmpfs tmpfs rw
24 21 254:2 / /runner rw - xfs /dev/vdb rw
27 21 254:1 / /データ rw - ext4 /dev/vda1 rw
25 21 0:51 / /covered rw - tmpfs tmpfs rw
26 25 254:1 / /covered rw - ext4 /dev/vda1 rw
"""


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine that is known as no container until the file `mark` is made."""
    for name in (*lasting.MARK_VARIABLES, "AWX_ISOLATED_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(lasting, "MARK_FILES", (str(tmp_path / "mark"),))
    (tmp_path / "mounts").write_text(MOUNTS)
    return tmp_path


def lost(machine, path):
    return bool(why_lost(machine.__class__(path), machine / "mounts"))


@pytest.mark.parametrize("path", ["/home/runner/follow/state.json", "/srv/the state/short/keys", "/srv/the statement", "/"])
def test_layers_of_an_image_and_memory_go_with_the_job(machine, path):
    assert not lost(machine, path)
    (machine / "mark").touch()
    assert lost(machine, path)


@pytest.mark.parametrize("path", ["/srv/the state/state.json", "/runner/project/plans", "/covered/keys", "/データ/plans"])
def test_volumes_stay(machine, path):
    (machine / "mark").touch()
    assert not lost(machine, path)


def test_the_folder_of_a_job_goes_with_it_although_it_is_a_volume(machine, monkeypatch):
    monkeypatch.setenv("AWX_ISOLATED_DATA_DIR", "/runner/artifacts/533")
    assert not lost(machine, "/runner/project/plans")
    (machine / "mark").touch()
    assert lost(machine, "/runner/project/plans")
    assert not lost(machine, "/srv/the state/plans")


def test_a_link_to_a_volume_is_followed(machine):
    (machine / "mark").touch()
    (machine / "link").symlink_to("/runner")
    (machine / "out").symlink_to("/home")
    assert not lost(machine, machine / "link" / "plans")
    assert lost(machine, machine / "out" / "plans")


def test_a_table_of_mounts_that_cannot_be_read_warns_of_nothing(machine):
    (machine / "mark").touch()
    assert not why_lost(machine, machine / "no such file")


def test_this_machine_warns_by_its_own_table(machine):
    (machine / "mark").touch()
    (warning,) = loss_warnings("/dev/shm/keys", "the option")
    assert "/dev/shm/keys" in warning
    assert not loss_warnings("/proc/keys", "the option")
