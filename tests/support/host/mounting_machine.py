# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine on which `mount` mounts, as far as its mountinfo tells."""

from __future__ import annotations

from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine


def mountinfo(*places):
    return "\n".join(f"2{at} 1 254:{at} / {place} rw - ext4 /dev/vda{at} rw" for at, place in enumerate(places))


class MountingMachine(RecordingMachine):
    """A machine that has mounted something when it was told to."""

    def change(self, command, *more, **options):
        said = super().change(command, *more, **options)
        if command[0] == "mount" and "remount" not in command:
            known = self.files["/proc/self/mountinfo"]
            self.files["/proc/self/mountinfo"] = f"{known}\n{mountinfo(command[-1])}"
        return said
