# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A job that adds words to a state, as group_follow adds to its record: URL, state, job, how often."""

from __future__ import annotations

import sys
import time

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.states import kept_in_ledger


def main() -> None:
    """Add each word once; wait while another job has the state."""
    url, name, job, times = sys.argv[1:]
    arguments = {"state": "ledger", "state_name": name, "database": url, "hold": 0.0}
    for number in range(int(times)):
        while True:
            try:
                with kept_in_ledger(arguments, "follow", writes=True) as kept:
                    kept.write(f"{kept.read() or ''} {job}.{number}")
                break
            except InputError as error:
                if "in use by another run" not in str(error):
                    raise
                time.sleep(0.01)


if __name__ == "__main__":
    main()
