# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger: providers, consumers and allocations in a database that many tasks change at once.

In come changes of providers and claims; out comes what they changed, or why nothing did. What is done is written as functions of one
connection, each run whole in one transaction. In reading order: tables.py and migrations (what is kept), database.py (which database,
and what its errors mean), retry.py (lost races), statements.py (statements compiled once), migrate.py, stored.py, read.py, worlds.py,
usages.py, guards.py (what keeps changes apart), changes.py, topology.py, inventories.py, own_names.py, successors.py and providers.py
(registering), claim_plan.py, claims.py, at_once.py, claim_first.py and reshape.py (claiming), import_world.py, mistyped.py and audit.py
(what was damaged), states.py (what other rooms keep), open.py (the interface of all), rehearsal.py (check mode), parse.py and plain.py
(from and to plain data).

A *guard* is the update of a row's generation that every change begins with. After spec "Resource Providers - Base Models" (seed 002).
"""
