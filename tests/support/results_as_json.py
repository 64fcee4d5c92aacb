# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment in which a playbook prints its results as one JSON document; see `callbacks/results.py`."""

from __future__ import annotations

from pathlib import Path

RESULTS_AS_JSON = {
    "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("callbacks")),
    "ANSIBLE_STDOUT_CALLBACK": "results",
}
