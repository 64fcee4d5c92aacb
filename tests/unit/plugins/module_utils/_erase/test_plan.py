# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is closed and erased, and every reason why nothing is: what a layout may not destroy is not erased either."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._erase.plan import EraseDisk, plan_erasure
from ansible_collections.bareon.allocator.plugins.module_utils._erase.ways import CLEAR, PURGE, SANITIZE, ZERO, Way
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import Protection
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import DeactivateGroup
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import StopArray
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, new_host, simple

WRITING = Way(ZERO, CLEAR, "zeros on all blocks")
SANITIZING = Way(SANITIZE, PURGE, "NVMe sanitize, block erase", ("nvme", "sanitize"), whole_drive=True)


def erasure(present, *disks, method="auto", protections=(), ways=(WRITING,), namespaces=None):
    names = [disk if disk.startswith("/") else f"{BY_ID}{disk}" for disk in disks]
    return plan_erasure(names, method, present, protections, {disk.device.name: ways for disk in present.disks}, namespaces or {})


def mirrored():
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 200, "data", "1.2"), 200, "ext4", "data", "xfs")
    return maker


def changed(present, name, **values):
    device = dataclasses.replace(present.tree.devices[name], **values)
    disks = tuple(
        dataclasses.replace(disk, device=device, source=device, paths=(device,)) if disk.device.name == name else disk
        for disk in present.disks
    )
    return dataclasses.replace(present, tree=present.tree.with_devices([device]), disks=disks)


def test_what_nothing_uses_is_closed_and_listed_as_lost():
    present = installed(simple()).present()
    found = erasure(present, "sda")
    assert found.refusals == ()
    assert found.closing == (DeactivateGroup("vg0", found.closing[0].uuid),)
    assert [target.step for target in found.targets] == [EraseDisk("/dev/sda", f"{BY_ID}sda", "zeros on all blocks")]
    (loss,) = found.losses
    assert loss.disk == f"{BY_ID}sda"
    assert {"ext4", "xfs", "LVM2_member"} <= {content.kind for content in loss.contents}


def test_an_empty_disk_is_erased_too():
    found = erasure(new_host().present(), "sda", "sdb")
    assert [target.disk.id for target in found.targets] == [f"{BY_ID}sda", f"{BY_ID}sdb"]
    assert found.losses == ()


def test_a_mirror_goes_with_both_of_its_disks_or_not_at_all():
    present = installed(mirrored()).present()
    both = erasure(present, "sda", "sdb")
    assert both.refusals == ()
    assert [type(step) for step in both.closing] == [StopArray]
    one = erasure(present, "sda")
    assert (one.closing, one.targets) == ((), ())
    assert any("/dev/sdb" in refusal for refusal in one.refusals)
    assert not any("wipe" in refusal for refusal in one.refusals)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param("sda1", {"mountpoints": ("/srv",)}, id="a partition that is mounted"),
        pytest.param("sda", {"mountpoints": ("[SWAP]",)}, id="swap"),
        pytest.param("sda", {"openers": ("postgres (1)",)}, id="a process that has it open"),
        pytest.param("sda", {"uses": ("exported by nvmet as namespace 1 of nqn",)}, id="an export"),
        pytest.param("sda", {"claimed": True}, id="the kernel holds it"),
        pytest.param("sda", {"row": {"ro": True}}, id="read-only"),
    ],
)
def test_what_is_in_use_or_read_only_refuses_all(name, values):
    found = erasure(changed(installed(simple()).present(), name, **values), "sda", "sdb")
    assert found.refusals
    assert (found.closing, found.targets) == ((), ())


@pytest.mark.parametrize("entry", [f"{BY_ID}sda", "wwn-sda", "/dev/sda"])
def test_a_protected_disk_refuses_all(entry):
    found = erasure(installed(simple()).present(), "sda", "sdb", protections=(Protection(entry, "protect"),))
    assert any("protect" in refusal for refusal in found.refusals)
    assert found.targets == ()


def test_names_are_refused_by_their_places():
    found = erasure(new_host().present(), "/dev/sda", "nowhere", "sdb", f"{BY_ID}sdb")
    assert [refusal.partition(":")[0] for refusal in found.refusals] == ["disks[0]", "disks[1]", "disks[3]"]
    assert f"{BY_ID}sda" in found.refusals[0]


def test_a_method_that_the_disk_does_not_offer_is_refused():
    (refusal,) = erasure(new_host().present(), "sda", method="crypto").refusals
    assert "crypto" in refusal
    assert refusal.endswith(ZERO)


@pytest.mark.parametrize(
    ("disks", "namespaces", "way"),
    [
        pytest.param(["sda", "sdb"], 1, "NVMe sanitize, block erase", id="all are named"),
        pytest.param(["sda"], 1, "zeros on all blocks", id="one stays"),
        pytest.param(["sda", "sdb"], 2, "zeros on all blocks", id="one that is not attached"),
    ],
)
def test_an_operation_on_a_drive_needs_all_of_its_namespaces(disks, namespaces, way):
    present = new_host().present()
    for name in ("sda", "sdb"):
        present = changed(present, name, row={"serial": "S1"})
    present = dataclasses.replace(present, disks=tuple(dataclasses.replace(disk, transport="nvme") for disk in present.disks))
    counts = dict.fromkeys(("sda", "sdb"), namespaces)
    found = erasure(present, *disks, ways=(SANITIZING, WRITING), namespaces=counts)
    assert {target.way.name for target in found.targets} == {way}
    asked = erasure(present, *disks, method="sanitize", ways=(SANITIZING, WRITING), namespaces=counts)
    assert bool(asked.refusals) is (way != SANITIZING.name)
