# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of modules that work on several groups at the same time."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `parallel`."""

    DOCUMENTATION = r"""
options:
  workers:
    description: How many groups are worked on at the same time, each in a process of its own. Default is the number of cores.
    type: int
    default: 0
  scheduler:
    description:
      - The address of a Dask cluster to work on the groups instead, such as V(tls://scheduler.example.com:8786). Certificates are set in
        Dask's own configuration on the controller.
      - Workers answer with JSON, which is checked. The controller reads no pickle of theirs.
    type: str
  insecure:
    description:
      - Whether O(scheduler) may be an address without TLS, such as C(tcp://). A client that can write to such a connection can run any code
        on the workers, and answer in their place.
    type: bool
    default: false
"""
