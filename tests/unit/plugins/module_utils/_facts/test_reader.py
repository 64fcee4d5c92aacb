# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of many devices at once, and what is asked of each where that cannot be."""

from __future__ import annotations

import posixpath

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import sysfs, udev
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import several_command
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost, Recorder

RECORD = "vm-storage.json"
EXPORT = " ".join(udev.COMMAND)


def asked(host, *beginning):
    """The commands that begin so, of a whole reading."""
    recorder = Recorder(host)
    read_hardware(recorder)
    return [command for command in recorder.record["commands"] if command.startswith(" ".join(beginning))]


class AtOnce(RecordedHost):
    """A recorded host whose tools tell of many devices at once; `broken` are devices of which one keeps wipefs from telling of any."""

    def __init__(self, record, broken=()):
        super().__init__(record)
        self.broken = broken

    def run(self, command):
        beginning = list(several_command(()))
        if list(command[: len(beginning)]) != beginning:
            return super().run(command)
        nodes = command[len(beginning) :]
        alone = {node: super(AtOnce, self).run(["wipefs", "--parsable", node]) for node in nodes}
        if any(node in self.broken or outcome is None or outcome.code for node, outcome in alone.items()):
            return None
        lines = [
            f"{posixpath.basename(node)},{line}"
            for node, outcome in alone.items()
            for line in outcome.stdout.splitlines()
            if not line.startswith("#")
        ]
        return type(next(iter(alone.values())))(0, "\n".join(["# device,offset,uuid,label,type", *lines]), "")


def test_one_wipefs_tells_the_same_as_many():
    host = RecordedHost.load(RECORD)
    at_once = AtOnce(host.record)
    assert read_hardware(at_once) == read_hardware(host)
    assert len(asked(at_once, "wipefs")) == 1
    assert len(asked(host, "wipefs")) > 5


def test_where_one_device_cannot_be_read_each_is_read_alone():
    host = RecordedHost.load(RECORD)
    broken = AtOnce(host.record, broken={asked(host, "wipefs", "--parsable", "/dev/")[0].rsplit(" ", 1)[-1]})
    assert read_hardware(broken) == read_hardware(host)


def test_a_device_that_cannot_be_read_keeps_no_other_from_being_read_with_all():
    host = RecordedHost.load(RECORD)
    first = asked(host, "wipefs", "--parsable", "/dev/")[0].rsplit(" ", 1)[-1]
    unreadable = {**host.record, "bytes": {first: {0: PermissionError(1, "Operation not permitted")}}}
    broken = AtOnce(unreadable, broken={first})
    assert read_hardware(broken) == read_hardware(host)
    nodes = [command.split(" ")[-1] for command in asked(broken, "wipefs", "--parsable", "/dev/")]
    assert nodes == [first]
    assert len(asked(broken, *several_command(()))) == 1


@pytest.mark.parametrize("complete", [True, False])
def test_udev_is_asked_for_block_devices_only_where_it_tells_of_all_of_them(complete):
    host = RecordedHost.load(RECORD)
    some = " ".join(udev.some_command(sysfs.read_rows(host)))
    database = host.record["commands"][EXPORT]["stdout"]
    block = database if complete else database.partition("\n\n")[0]
    telling = host.with_command(some, block)
    assert read_hardware(telling) == read_hardware(host)
    assert (EXPORT in asked(telling, "udevadm")) is not complete


def test_names_with_a_slash_are_those_of_sysfs():
    assert udev.some_command(["sda", "cciss/c0d0"]) == ["udevadm", "info", "/sys/class/block/sda", "/sys/class/block/cciss!c0d0"]
