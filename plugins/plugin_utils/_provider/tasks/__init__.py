# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of the modules, one file each: arguments that Ansible has checked come in, results as plain data go out.

Read provider.py, info.py, candidates.py, allocation.py.
"""
