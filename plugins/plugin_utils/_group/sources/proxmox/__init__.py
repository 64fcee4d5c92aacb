# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE: what its API answers, from a server or from files, read into a `Cluster`.

In comes a document for each path of the API; out go the cluster, with what ties guests to nodes as rules, or every mistake with its path.
In reading order: config (one guest's disks and devices), guests (the guests as a whole), processors (whose CPU flags allow which
nodes), rules (of HA, tags, and what cannot move), documents (the cluster of them all), server (which of them are asked for, and how).
"""
