#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_backup, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_backup
short_description: Back up the ledger of resource providers
version_added: 1.1.0
description:
  - Writes a whole ledger into one SQLite file, as it is at one moment. Other tasks may go on to write meanwhile.
  - A copy of the file of an SQLite ledger is no backup, since the last commits are in another file. This module uses SQLite's own
    backup.
  - A ledger in PostgreSQL or MariaDB is read in one transaction. The file is a ledger by itself, which every module takes as C(database).
  - The copy is audited before it gets its name. It keeps the generations of providers and consumers.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database.kept
  - bareon.allocator.database.backup
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  path:
    description:
      - The file to write, on the controller. A file of that name is replaced at once when the backup is complete.
      - It is readable for its owner alone. Its folder must exist.
    type: path
    required: true
seealso:
  - module: bareon.allocator.provider_restore
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Keep a copy of the ledger
  bareon.allocator.provider_backup:
    path: "/var/backups/bareon-{{ now(utc=true).strftime('%Y-%m-%d') }}.sqlite"
  register: saved

- name: Send a message about a ledger that contradicts itself
  ansible.builtin.assert:
    that: not saved.audit
"""

RETURN = r"""
---
path:
  description: The file, as an absolute path.
  returned: success
  type: str
  sample: /srv/backup/ledger.json
providers:
  description: How many providers it holds.
  returned: success
  type: int
  sample: 13
consumers:
  description: How many consumers it holds that have something.
  returned: success
  type: int
  sample: 15
audit:
  description: The contradictions in it, as M(bareon.allocator.provider_info) finds them; an empty list where it is in order.
  returned: success
  type: list
  elements: dict
  sample: []
"""
