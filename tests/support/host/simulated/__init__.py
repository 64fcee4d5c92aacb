# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host in memory that does what the commands of the steps would do, and can be cut off at any moment.

From the media up: media (disks, and what survives a power cut), host (what tools see and do), steps (a step, piece by piece), runs (a run,
cut off at any moment), schemas and layouts (what to make), checks (whether it was made).
"""
