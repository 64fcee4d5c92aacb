# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all modules and lookups that work on providers: where these are kept."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `database` for modules, `database.lookup` for lookups; plugin_utils/provider/arguments.py has the arguments."""

    DOCUMENTATION = r"""
options:
  database:
    description:
      - The database that keeps providers and allocations, as the URL that SQLAlchemy takes, such as V(sqlite:////var/lib/bareon.sqlite),
        V(postgresql://user:password@host/name) or V(mariadb://user:password@host/name). A Galera cluster is reached through any node.
      - Tables are made by the first task that writes, and brought up to date by the first one of a newer release.
      - Default is the environment variable E(BAREON_DATABASE) on the controller, else the SQLite file
        C(bareon/providers.sqlite) in E(XDG_DATA_HOME), which is C(~/.local/share) when it is not set.
      - SQLite needs a file system of the controller itself, since it does not work over NFS.
    type: str
  timeout:
    description:
      - For how many seconds the task may wait for the database in all, including connecting, locks held by others, answers, and
        repetitions. The time to compute candidates does not count.
      - When the time is over, the message says whether the change was made, or that this is not known. Running the task again is always
        safe.
    type: float
    default: 60
  world:
    description:
      - Providers and their allocations, written out in place of a database. Nothing is kept after the task.
      - "Has the keys C(providers), a list of what M(bareon.allocator.provider) takes; C(allocations),
        C({consumer: {provider: {class: amount}}}); C(custom_traits) and C(custom_classes), lists of names that exist
        although nothing uses them."
      - Mutually exclusive with O(database).
    type: dict
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller
  - psycopg 3 for PostgreSQL, PyMySQL for MariaDB, on the controller
"""

    LOOKUP = r"""
options:
  database:
    description:
      - The database that keeps providers and allocations, as the URL that SQLAlchemy takes.
      - Default is the environment variable E(BAREON_DATABASE) on the controller, else the SQLite file
        C(bareon/providers.sqlite) in E(XDG_DATA_HOME), which is C(~/.local/share) when it is not set.
    type: str
  timeout:
    description: For how many seconds the lookup may wait for the database in all.
    type: float
    default: 60
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller
  - psycopg 3 for PostgreSQL, PyMySQL for MariaDB, on the controller
"""
