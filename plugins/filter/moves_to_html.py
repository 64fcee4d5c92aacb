# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes a page of a plan of moves."""

from __future__ import annotations

DOCUMENTATION = r"""
name: moves_to_html
short_description: Show a plan of moves on a page
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Makes one HTML page of a plan of a group module.
  - Each node is drawn twice, as it is now and as it is after the plan, with bars for memory, disk, CPUs and load. What is kept for
    failovers is hatched, and a mark shows what was before. Moves are arrows from the source node to the target node.
  - Groups that moves connect share a picture. Nodes that no move touches are listed below it.
  - Of M(bareon.allocator.group_balance) with O(bareon.allocator.group_balance#module:of=storage), storages are drawn in place of nodes, and
    arrows are disks that move. Disks that stay are listed with the reason.
  - A stage can be chosen, so that large plans can be read. Pointing at a node shows its moves only, pointing at an arrow, or reaching it
    with the keyboard, shows what is moved. All moves are also there as a table.
  - A plan with more than 60 moves in a picture, or more than 12 pictures, is shown as an overview instead. Every node is a field whose
    colour shows how much of its scarcest capacity is used, before and after. Below, moves between the same two nodes are drawn as one
    ribbon with their number, those of a chosen node, stage or search, or else the ways with most moves. All moves and nodes are tables
    that can be sorted.
  - The page loads nothing, follows the light or dark setting of the reader, can be read on a phone, and prints. Only an overview runs a
    script, for search and choice; it is part of the page, and without it the tables show everything.
positional: _input
options:
  _input:
    description:
      - A plan, as RV(bareon.allocator.group_balance#module:plan), or the whole result of a group module that has one. Of a whole result
        C(unplaced), and the scores of C(groups), are shown as well; disks that move between storages need it.
    type: dict
    required: true
  title:
    description:
      - The heading of the page.
    type: str
    default: Moves
seealso:
  - module: bareon.allocator.group_evacuate
  - plugin: bareon.allocator.plans_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Write a page of the plan
  ansible.builtin.copy:
    content: "{{ evacuation | bareon.allocator.moves_to_html(title='Emptying node 1') }}"
    dest: "{{ playbook_dir }}/moves.html"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - An HTML document.
  type: str
  returned: always
  sample: "<!DOCTYPE html> ..."
"""

import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._group.plan.picture.page import moves_page


def moves_to_html(result: t.Any, title: str = "Moves") -> str:
    """Return the page of a plan; AnsibleFilterError when the input is none."""
    answer = plain(result) if isinstance(result, Mapping) else {}
    whole = answer if "plan" in answer else {"plan": answer}
    plan = whole["plan"]
    if not isinstance(plan, dict) or not all(isinstance(plan.get(key), list) for key in ("moves", "stages", "nodes")):
        raise AnsibleFilterError("moves_to_html needs a plan with moves, stages and nodes, as `plan` of bareon.allocator.group_evacuate")
    if whole.get("storages") is None and any("disk" in move for move in plan["moves"] if isinstance(move, dict)):
        raise AnsibleFilterError("moves_to_html needs the whole result of group_balance to draw disks that move, as it has their storages")
    try:
        return moves_page(whole, str(title))
    except MISREAD as error:
        raise AnsibleFilterError(f"moves_to_html cannot read the plan: {type(error).__name__}: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"moves_to_html": moves_to_html}
