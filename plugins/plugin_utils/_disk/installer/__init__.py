# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan in the words of installers: Kickstart, curtin, Ignition and Butane, FAI, systemd-repart, disko, MAAS, Talos,
Warewulf, Ironic, Metal3; and of Ceph.

In comes a plan as plain data, and options of the target; out goes what the target reads, and what it cannot say. The layout is
that of module_utils/_schema, with durable names of disks (durable.py); one file for each target writes it. What a target has no words for
is a loss, with the space and the reason (losses.py): an error, or a warning where the caller has agreed to lose it. What no target would
be refused for, such as the UUIDs of partitions, is a warning. What would destroy data that are to be kept is never agreed to.
In reading order: durable, words, losses, write (from a plan to a text), then the targets.
"""
