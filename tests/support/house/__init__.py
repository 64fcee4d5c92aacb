# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the source says of itself: files, packages and imports, read with `ast` and never run.

In reading order: `imports` (which file imports which), used by `tests/unit/test_rooms.py` and `tests/utils/draw_rooms.py`; `variables`
(which variables playbooks and roles read).
"""
