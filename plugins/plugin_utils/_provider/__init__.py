# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resource providers: their inventories, the consumers that use them, and where a request would fit.

In come the arguments of the modules provider, provider_info, provider_candidates and provider_allocation; out come their results as
plain data. The packages, each of which imports only those before it:

- world: providers, inventories and allocations at one moment, and how plain data describes them (seed 002);
- request: what is asked of a world, as groups or as Placement's query string (seed 003);
- candidates: every way to satisfy a request, and why there is none (seed 003);
- ledger: the world kept in a database, changed by one transaction at a time (seed 002);
- feasible: candidates straight from that database, of which only the trees that may satisfy a request are read;
- tasks: one file for each module;
- render: what provider_info returns as a page;
- sources: what other programs know of servers as providers.

arguments.py has what the modules take in common. A *ledger* is our word for that database: what is claimed is entered once and for all.
"""
