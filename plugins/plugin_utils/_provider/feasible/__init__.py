# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Candidates straight from a database: its indexes say which trees may satisfy a request, and only those are loaded and searched.

In come a connection and a Request; out come the candidates that a search of the whole world would give, in its order. What SQL asks is
necessary, never sufficient: the search decides. Read criteria.py, roots.py, parts.py, why.py; matching.py lists single providers.
"""
