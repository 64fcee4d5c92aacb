# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of all modules that keep room for failures of several nodes."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `tolerant`; TOLERANCE_ARGUMENTS of plugin_utils/_group/arguments.py are the matching arguments."""

    DOCUMENTATION = r"""
options:
  tolerate:
    description:
      - What may fail at once in a group so that its instances still find places, one of the suboptions. Single nodes may always fail, which
        is N+1. No plan strands more of what fails at once than was stranded before.
      - Instances on shared storage restart on the other nodes, mirrored ones on their secondaries, which need the memory for all of them
        together. Mirrored instances both of whose nodes fail are lost, and only counted.
      - A group whose nodes have more than 2500 sets of this kind is judged by its largest nodes.
    type: dict
    suboptions:
      nodes:
        description: That many nodes, any of them.
        type: int
      percent:
        description: Any nodes that together have up to this part of the memory of the group's nodes that are up.
        type: float
      domain:
        description: All nodes with the same tag, of the tags that begin like this, such as V(rack:).
        type: str
"""
