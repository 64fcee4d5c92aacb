# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of all modules that plan by score."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `scored`; SCORE_ARGUMENTS of plugin_utils/_group/arguments.py are the matching arguments."""

    DOCUMENTATION = r"""
options:
  score:
    description: How scores are computed, as in M(bareon.allocator.group_info).
    type: str
    choices: [htools, capacity]
    default: htools
"""
