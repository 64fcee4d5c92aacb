# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have Ceph's own code read service specifications, by the Python of Debian that has it.

In come, as JSON, pairs of a specification and the disks of the host (`path`, `rotational`); out goes for each what Ceph takes as data,
database and log devices, and the command by which it has ceph-volume make OSDs.
"""

import json
import sys

from ceph.deployment.drive_group import DriveGroupSpec
from ceph.deployment.drive_selection import DriveSelection
from ceph.deployment.inventory import Device
from ceph.deployment.service_spec import ServiceSpec
from ceph.deployment.translate import to_ceph_volume


def read(given, disks):
    spec = ServiceSpec.from_json(given)
    assert isinstance(spec, DriveGroupSpec)
    spec.validate()
    known = [Device(disk["path"], available=True, sys_api={"rotational": str(int(disk["rotational"]))}) for disk in disks]
    selection = DriveSelection(spec, known)
    chosen = {name: [device.path for device in getattr(selection, f"{name}_devices")()] for name in ("data", "db", "wal")}
    command = to_ceph_volume(selection, []).run()
    return {
        **chosen,
        "hosts": [str(host) for host in spec.placement.hosts],
        "command": command if isinstance(command, str) else " ".join(command),
    }


json.dump([read(*pair) for pair in json.load(sys.stdin)], sys.stdout)
