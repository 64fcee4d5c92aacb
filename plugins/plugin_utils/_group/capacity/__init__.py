# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many more instances of a size fit, and what to add so that more do.

In come a cluster and the size of an instance; out go copies with their places, what keeps the next one out, and nodes to add.

In reading order: pairs (the best pair of nodes for copy after copy of a mirrored instance), copies (one copy: its best place in a
group's *room*, the state that knows this one instance alone), level (copies on one node each, by free memory), stranding (for how many
of them there is room elsewhere when a node fails), bound (what there cannot be more than), count (copies until none fits), additions
(nodes to add), tiered (the largest size first, then ever smaller ones). After Ganeti's hspace.
"""
