# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many requests at once: where each consumer goes, so that all of them have room together.

In come a connection and entries, each a consumer with its request; out come placements, which one transaction claims, and the entries
without one. In reading order: model.py, supply.py (the trees that may satisfy one request, best first, with what the entries before
took from them), fleet.py (one entry after the other), exact.py (all of them together, where that fails), gang.py (all of them in one
aggregate, each on a root or a provider of its own).
"""
