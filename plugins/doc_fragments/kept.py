# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the modules on groups keep what later runs must know."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `kept`. The arguments are in plugin_utils/_bridge/states.py."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - Where it is kept for later runs. V(file) is on the controller, V(ledger) is in the database of a ledger, for controllers that
        lose their files, such as the containers of AWX.
      - In a ledger, one run at a time has the state. Another run fails, with the name of the first one and the end of its time.
        A run that has been replaced after its time keeps nothing.
    type: str
    choices: [file, ledger]
    default: file
    version_added: 1.1.0
  state_name:
    description:
      - The name of the state, for O(state=ledger), where it is required. Several clusters need several names in one ledger.
    type: str
    version_added: 1.1.0
  database:
    description:
      - The database for O(state=ledger), as in M(bareon.allocator.provider). Default is the environment variable E(BAREON_DATABASE).
    type: str
    version_added: 1.1.0
  hold:
    description:
      - For O(state=ledger), for how many seconds after the task the state still belongs to this run, so that no other run begins while
        moves are carried out. Each further task of the run with O(hold) starts this time again, and one without it ends it.
      - A run whose process is known to have ended has no state. Of other hosts and of containers this cannot be known.
    type: float
    default: 0
    version_added: 1.1.0
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller, for O(state=ledger)
"""
