# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all modules and lookups that work on providers: where these are kept."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `database` for modules, or `database.kept` for those that take no world, with `database.reads`, `database.writes` or
    `database.backup`; `database.lookup` for lookups.

    The arguments are in plugin_utils/_provider/arguments.py.
    """

    DOCUMENTATION = r"""
options:
  database:
    description:
      - The database that keeps providers and allocations, as the URL that SQLAlchemy takes, such as V(sqlite:////var/lib/bareon.sqlite),
        V(postgresql://user:password@host/name) or V(mariadb://user:password@host/name). For a Galera cluster, name any of its nodes.
      - The first task that writes creates the tables. The first one of a newer release migrates them.
      - Default is the environment variable E(BAREON_DATABASE) on the controller, else the SQLite file
        C(bareon/providers.sqlite) in E(XDG_DATA_HOME), which is C(~/.local/share) when it is not set. A task that makes this file warns.
        In a container, where it would be new and empty at every job, it is read and made only if E(XDG_DATA_HOME) is set. A path in
        E(XDG_DATA_HOME) that is not absolute is ignored. If there is no home either, a database must be named.
      - SQLite needs a local file system of the controller. It does not work over NFS.
    type: str
  timeout:
    description:
      - How many seconds the task may wait for the database in total, including connecting, locks held by others, answers and retries. The
        time to compute candidates does not count.
      - After a timeout the message says whether the change was made, or that this is not known. It is always safe to run the task again.
    type: float
    default: 60
  world:
    description:
      - Providers and their allocations, written inline instead of a database. Nothing is kept after the task.
      - "Has the keys C(providers), a list of what M(bareon.allocator.provider) takes; C(allocations),
        C({consumer: {provider: {class: amount}}}); C(custom_traits) and C(custom_classes), lists of names that exist
        although nothing uses them."
      - Mutually exclusive with O(database).
    type: dict
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller
  - psycopg 3 for PostgreSQL, PyMySQL for MariaDB, on the controller
"""

    KEPT = r"""
options:
  database:
    description:
      - The database that keeps providers and allocations, as in M(bareon.allocator.provider).
    type: str
  timeout:
    description: How many seconds the task may wait for the database in total.
    type: float
    default: 60
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller
  - psycopg 3 for PostgreSQL, PyMySQL for MariaDB, on the controller
"""

    BACKUP = r"""
attributes:
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - Each run writes everything.
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
    description: How many seconds the lookup may wait for the database in total.
    type: float
    default: 60
requirements:
  - SQLAlchemy 2, alembic, os-traits and os-resource-classes on the controller
  - psycopg 3 for PostgreSQL, PyMySQL for MariaDB, on the controller
"""

    READS = r"""
attributes:
  check_mode:
    details:
      - Nothing is ever changed.
      - With C(--check) it sees what earlier tasks of M(bareon.allocator.provider) and M(bareon.allocator.provider_allocation) would have
        changed.
"""

    WRITES = r"""
attributes:
  check_mode:
    details:
      - With C(--check) everything is carried out in a copy of the database that lasts as long as the run, so that all errors show, and
        later tasks see what earlier ones would have changed. A database that is not there yet is not made.
      - Where the task alone is in check mode, everything is carried out in the database and taken back.
"""
