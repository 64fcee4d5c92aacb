# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_keys on a host whose containers are not there yet: everything but the doing is real."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._keys.options import request_of
from ansible_collections.bareon.allocator.plugins.module_utils._keys.report import as_result
from ansible_collections.bareon.allocator.plugins.module_utils._keys.run import foresee
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine


def main() -> None:
    """Tell what would be done."""
    module = AnsibleModule(
        argument_spec={
            "containers": {"type": "list", "elements": "dict", "required": True},
            "luks_key": {"type": "str", "no_log": True},
            "luks_key_file": {"type": "path", "no_log": False},
            "luks_key_files": {"type": "dict", "default": {}, "no_log": False},
            "tpm2_pin": {"type": "str", "no_log": True},
            "luks_old_key": {"type": "str", "no_log": True},
            "luks_old_key_file": {"type": "path", "no_log": False},
            "take_away": {"type": "list", "elements": "str", "default": []},
            "renew": {"type": "list", "elements": "str", "default": []},
            "root": {"type": "path", "default": "/"},
            "take_last_key": {"type": "bool", "default": False},
            "hand_over": {"type": "dict"},
            "schema": {"type": "dict"},
            "recovery_key_directory": {"type": "path", "no_log": False},
            "show_recovery_keys": {"type": "bool", "default": False, "no_log": False},
        },
        supports_check_mode=True,
    )
    request = request_of(module.params)
    module.exit_json(**as_result(foresee(request, LocalMachine()), request, check_mode=True))


if __name__ == "__main__":
    main()
