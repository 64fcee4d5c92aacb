# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sources: clusters as others write them, files or servers, read into a `Cluster`; and a cluster written out again.

In comes untrusted text or plain data; out goes `Loaded`: a cluster, and a request where the source carries one; or every mistake with its
place. In reading order: loaded, load (one door to all of them), policy (policies as Ganeti writes them), server (one that is asked over
HTTP), then one file for each source: text (htools), iallocator and rapi (Ganeti's remote API), which share ganeti, inline (a playbook's own
lists), and for Proxmox VE the package proxmox. A ledger is read by the bridge. After the interfaces of Ganeti's htools.
"""
