# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt: nodes, guests and storage pools, as `virsh` prints them.

`virsh.py` asks, `documents.py` makes a cluster of the answers, with the help of one file each for nodes, guests, pools and rules.
"""
