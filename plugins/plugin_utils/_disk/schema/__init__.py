# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading what people write: the dynamic schema, profiles with overrides, and the facts of a machine.

In comes untrusted plain data; out go `Schema` and `Hardware`, or every mistake with its place. In reading order: values (the keys of a
space, by tables; sizes, LVM, arrays, mounts, subvolumes and datasets have files of their own), parse (a flat list of spaces: by entry,
relations between them, copies, and no_plan where there can be none; lvm, btrfs and zpool have what is asked of these alone), disks (sets of
disks by names and expressions), limits (what an expression may cost), alike (which disks make partners), functions (what expressions may
ask of the hardware), grammar (YAQL's engine), yaql (expressions), hardware (facts), eligible (which disks a plan may use), memo (which
facts an expression read), reader (a schema read once for all machines alike), profiles. After "Dynamic schema parser" (seed 000).
"""
