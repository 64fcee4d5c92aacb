# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LUKS containers with detached headers, by cryptsetup and dm-crypt of a kernel: their disks look like nothing, and are never empty."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import KEY_FILE, LayoutHost

MIB = 1024**2
WHOLE, FREE = DISKS = (Disk("WHOLE", 200 * MIB), Disk("FREE", 200 * MIB))
HEADER = "/root/vault.img"
PLAN: list[dict[str, t.Any]] = [
    {"id": "data", "type": "partition", "min_size": 100, "fs_type": "ext4", "mount": "/srv/data", "disks": [WHOLE.link]}
]


def test_a_disk_whose_header_is_elsewhere_is_never_empty(image: Path, user_mode_root: Path, tmp_path: Path) -> None:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        host = LayoutHost(machine)
        for disk in DISKS:
            machine.plug(disk)

        def disk_in_facts() -> dict[str, t.Any]:
            return next(disk for disk in host.facts()["disks"] if disk["id"] == WHOLE.link)

        schema = host.plan(PLAN)["schema"]
        quick = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000"
        host.shell(f"cryptsetup luksFormat --batch-mode --type luks2 {quick} --header {HEADER} --key-file {KEY_FILE} {WHOLE.link}")
        opens = f"cryptsetup open --header {HEADER} --key-file {KEY_FILE} {WHOLE.link} vault"
        host.shell(f"{opens}; head -c 1000000 /dev/urandom >/dev/mapper/vault; sync; udevadm settle")
        # The kernel keeps what was read of the disk itself before the container was written to.
        host.shell("echo 3 >/proc/sys/vm/drop_caches")
        before = host.shell(f"sha256sum {WHOLE.link}")
        # Open: in use, whatever crypttab says, and by its name.
        found = disk_in_facts()
        assert (found["empty"], found["in_use"], found["content"]) == (False, True, [])
        assert "open LUKS container" in found["used_by"][0]["use"]
        assert "whose header is elsewhere" in host.refuse(schema, wipe=[WHOLE.link])
        # Closed: nothing on the disk says so, but crypttab does.
        host.shell("cryptsetup close vault; udevadm settle")
        assert disk_in_facts()["empty"]
        host.shell(f"echo 'vault {WHOLE.link} none luks,noauto,header={HEADER}' >/etc/crypttab")
        found = disk_in_facts()
        assert (found["empty"], found["in_use"]) == (False, True)
        says = f"the data of the LUKS container vault, whose header is {HEADER} by /etc/crypttab"
        assert found["used_by"][0]["use"] == says
        for wipe in ([], [WHOLE.link]):
            assert says in host.refuse(schema, wipe=wipe)
        adopted = host._result(host._run("disk_layout", {"adopt": True, "disks": [WHOLE.link]}))
        assert f"{WHOLE.link} is left out of the schema, and stays as it is: it is {says}" in json.dumps(adopted["warnings"])
        host.shell("sync; echo 3 >/proc/sys/vm/drop_caches")
        assert host.shell(f"sha256sum {WHOLE.link}") == before
        # Without the line they are unknown data, which can be given away.
        host.shell(">/etc/crypttab")
        host.apply(schema, wipe=[WHOLE.link])
    finally:
        machine.throw_away()
