# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests share, by room: makers of input, oracles that share no code with what they judge, and stand-ins for machines.

In reading order: `disk`, `host`, `provider`, `group`; `vm` for machines that really start, `house` for the rules of the source itself.
"""
