# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests of hardware ask of recorded hosts, in short."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost


def facts(host, *include, devices=()):
    return read_hardware(host if isinstance(host, RecordedHost) else RecordedHost.load(f"{host}.json"), include, devices)


def disks(host, *include, devices=()):
    return {disk["dev"]: disk for disk in facts(host, *include, devices=devices)[0]["disks"]}


def content(disk):
    return [(found["dev"], found["type"]) for found in disk["content"]]


def holders(disk):
    return {holder["name"]: holder for holder in disk["holders"]}
