#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_restore, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_restore
short_description: Restore the ledger of resource providers from a backup
version_added: 1.1.0
description:
  - Makes a ledger in SQLite, PostgreSQL or MariaDB what a backup of M(bareon.allocator.provider_backup) holds, from whichever of these the
    backup is. It is written in one transaction, so that no process sees half a ledger.
  - Fails while another program writes to the ledger, and where the backup is no ledger. The tables of a server are locked against writers
    meanwhile; on Galera against those on the same node, so stop the others first.
  - Providers and consumers that are not in the backup are gone. A damaged file of SQLite is replaced, together with its C(-wal) and
    C(-shm).
  - Claims that were made since the backup are lost with their generations, though what they stand for may still run. Compare before you
    go on, and with M(bareon.allocator.provider_reconcile) afterwards.
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
      - The backup, on the controller. It stays as it is. One of an earlier release is brought up to date on the way.
    type: path
    required: true
seealso:
  - module: bareon.allocator.provider_backup
  - module: bareon.allocator.provider_info
  - module: bareon.allocator.provider_reconcile
"""

EXAMPLES = r"""
---
- name: Go back to what the ledger was at night
  bareon.allocator.provider_restore:
    path: /var/backups/bareon-2026-11-25.sqlite
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
