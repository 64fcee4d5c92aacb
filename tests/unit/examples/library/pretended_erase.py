# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_erase on a host that has just the disks that are named, of one MiB each and in memory: everything but the medium is real."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._erase.carry_out import Workplace, erase
from ansible_collections.bareon.allocator.plugins.module_utils._erase.plan import plan_erasure
from ansible_collections.bareon.allocator.plugins.module_utils._erase.record import Records
from ansible_collections.bareon.allocator.plugins.module_utils._erase.ways import ways_of
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import digest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine

MIB = 1024**2


class Memory:
    """A disk in memory."""

    def __init__(self) -> None:
        self.content, self.size = bytearray(b"old " * (MIB // 4)), MIB

    @contextlib.contextmanager
    def opened(self, _node: str, _size: int, _writes: bool) -> Iterator[Memory]:
        yield self

    def read(self, start: int, length: int) -> bytes:
        return bytes(self.content[start : start + length])

    def zero(self, start: int, length: int) -> None:
        self.content[start : start + length] = bytes(length)

    discard = zero

    def flush(self) -> None:
        """Everything is down at once."""


def main() -> None:
    """Erase what is in memory."""
    module = AnsibleModule(
        argument_spec={
            "disks": {"type": "list", "elements": "str", "required": True},
            "method": {"type": "str", "default": "auto"},
            "confirm": {"type": "str"},
        },
        supports_check_mode=True,
    )
    names, machine = module.params["disks"], LocalMachine()
    devices = [Device(f"vd{number}", f"/dev/vd{number}", "disk", MIB, links=(name,), read=True) for number, name in enumerate(names)]
    disks = tuple(Disk(device, name, None, device.links, "virtio", device, (device,)) for device, name in zip(devices, names, strict=True))
    present = Present(Tree({device.name: device for device in devices}), disks)
    plan = plan_erasure(names, module.params["method"], present, (), {disk.device.name: ways_of(machine, disk) for disk in disks}, {})
    if plan.refusals or module.params["confirm"] not in (None, digest(plan.losses)):
        module.fail_json(msg="; ".join(plan.refusals) or "confirm is another digest")
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for target in () if module.check_mode else plan.targets:
            place = Workplace(machine, Records(folder), open=Memory().opened)
            records.append(erase(place, target).plain())
    module.exit_json(changed=True, records=records, steps=[], destroys=[], destroys_digest=digest(plan.losses))


if __name__ == "__main__":
    main()
