# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The world: all providers, what each has, and what each consumer uses, at one moment.

In comes plain data (the option `world`); out comes a frozen World. Read names.py (which classes, traits and UUIDs there are), model.py
(Inventory, Provider, World), parse.py. After spec "Resource Providers - Base Models" (seed 002).
"""
