# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A connection to this machine that Ansible takes for one to another: it has to find the host's Python there."""

from __future__ import annotations

import typing as t

from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: apart
short_description: This machine, as if it were another one
description:
  - It is a stand-in for a connection to another machine.
author:
  - The bareon.allocator maintainers (@bareon)
options: {}
extends_documentation_fragment: [connection_pipelining]
"""


class Connection(Local):
    """Commands and files as the connection `local` has them."""

    transport: t.ClassVar[str] = "apart"
    _remote_is_local = False
