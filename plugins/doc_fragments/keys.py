# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of LUKS containers, as all modules on the host take them."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `keys`; module_utils/_steps/luks.py has the arguments."""

    DOCUMENTATION = r"""
options:
  luks_key:
    description:
      - The passphrase of the LUKS containers.
      - It is used as it is, without a newline, and passed to C(cryptsetup) on standard input or in memory. It is never shown.
      - One with a line break or another control character is refused, because nobody can type it. In YAML, C(|) adds such a line break.
      - Mutually exclusive with O(luks_key_file).
    type: str
  luks_key_file:
    description:
      - A file on the host whose whole content is the key of the LUKS containers.
      - One of less than 16 bytes, that others than its owner may read, write or execute, or that does not belong to root, is refused.
    type: path
  luks_key_files:
    description:
      - Files on the host with the keys of single LUKS containers, by the names of the containers. They take precedence over O(luks_key)
        and O(luks_key_file).
    type: dict
    default: {}
"""
