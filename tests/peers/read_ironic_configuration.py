# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have Ironic's own code read what is written for it: RAID configurations, and hints for the root device and for the disks of arrays.

In come, as JSON, parts of nodes; out goes for each how many hints were read. What Ironic refuses ends it with its message.
"""

import json
import pathlib
import sys

import ironic.drivers
from ironic.common import raid, utils

SCHEMA = json.loads((pathlib.Path(ironic.drivers.__file__).parent / "raid_config_schema.json").read_text(encoding="utf-8"))


def read(node):
    hints = [node["properties"]["root_device"]] if "root_device" in node["properties"] else []
    if "target_raid_config" in node:
        raid.validate_configuration(node["target_raid_config"], SCHEMA)
        hints += [hint for disk in node["target_raid_config"]["logical_disks"] for hint in disk["physical_disks"]]
    return len([utils.parse_root_device_hints(hint) for hint in hints])


json.dump([read(node) for node in json.load(sys.stdin)], sys.stdout)
