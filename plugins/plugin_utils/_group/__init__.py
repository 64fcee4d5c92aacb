# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups of nodes that fail over to each other: where instances go, and how they get there (seeds 001 and 004).

In come the arguments of the group modules; out come their results as plain data. The packages, each of which imports only those
before it:

- cluster: groups, nodes and instances, and the state of arrays that all else works on;
- sources: clusters as they are described elsewhere (Ganeti, Proxmox VE, plain data), and back;
- metrics: scores, limits, redundancy, health;
- neighbourhood: what single moves and exchanges would change;
- place: where instances can go;
- plan: the order and the stages of moves, and how far they have been carried out;
- balance, evacuate, capacity: searches for better places, empty nodes, room for more;
- redistribute: instances that go to other groups;
- storages: disks that go to other storages;
- follow: when any of this is worth doing again, from run to run;
- tasks: one file for each action.

arguments.py has what the modules take in common.
"""
