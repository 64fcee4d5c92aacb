# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked for: the explicit static schema, checked, as a layout of disks, arrays, containers, groups, volumes and filesystems.

In comes plain data, as disk_plan writes it or as a person does; out goes a `Layout` in bytes, or every mistake with its place.
A schema in the hand-written form of Bareon goes through the package bareon first.
In reading order: kinds.py and unlock.py (what values may be), lvm.py and md.py (all of their technology: keys, model, and what is read of
items), table.py (the keys of all lists), model.py, static.py with entry.py, filesystems.py and zpools.py (items to a model), checks.py
(how they fit each other), starting.py (devices of boot loaders, and what opens root).
After "List of terms" (seed 000): the static schema.
"""
