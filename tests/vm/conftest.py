# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of the machine that tests start, and starts of it.

TEST_MACHINE_SUITE chooses Debian's release, TEST_MACHINES the folder of the images (.build/vm).
"""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def image() -> Path:
    suite = os.environ.get("TEST_MACHINE_SUITE", "trixie")
    folder = Path(os.environ.get("TEST_MACHINES", _ROOT / ".build" / "vm")) / suite
    if not (folder / "root.img").exists():
        pytest.fail(f"there is no machine to start; as root run: tests/vm/build-image {suite}")
    return folder


@pytest.fixture(scope="session")
def layout_start(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved start of a machine that has the modules."""
    file = tmp_path_factory.mktemp("start") / "layout.qcow2"
    with machine(image, tmp_path_factory.mktemp("machine"), []) as started:
        LayoutHost(started).prepare(tmp_path_factory.mktemp("code"))
        started.save_start(file)
    return file


@pytest.fixture
def layout_host(image: Path, layout_start: Path, tmp_path: Path) -> t.Iterator[t.Callable[[t.Sequence[Disk]], LayoutHost]]:
    """Give a function that gives a machine with these disks and the modules; one for each test."""
    with machine(image, tmp_path, [], layout_start) as started:

        def plug(disks: t.Sequence[Disk]) -> LayoutHost:
            for disk in disks:
                started.plug(disk)
            return LayoutHost(started)

        yield plug


@pytest.fixture(scope="session")
def user_mode_root(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a User Mode Linux that has the modules."""
    file = tmp_path_factory.mktemp("start") / "root.cow"
    started = UserModeMachine(image, tmp_path_factory.mktemp("machine"))
    try:
        started.start([], {})
        LayoutHost(started).prepare(tmp_path_factory.mktemp("code"))
        started.save_root(file)
    finally:
        started.throw_away()
    return file
