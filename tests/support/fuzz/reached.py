# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which parsers sound inputs reach, as a JSON list of `file::function`; in a process of its own, where nothing was read before."""

from __future__ import annotations

import json
import os
import sys
import types

from ansible_collections.bareon.allocator.tests.support.fuzz.targets import ROOT, all_targets

PARSERS = ("parse_", "read_")
"""How the name of a function begins that reads something."""


def reached() -> list[str]:
    """Return the functions that are called, from the making of the targets on."""
    called: set[tuple[str, str]] = set()

    def note(frame: types.FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name.startswith(PARSERS):
            called.add((os.path.realpath(frame.f_code.co_filename), frame.f_code.co_name))

    sys.setprofile(note)
    for target in all_targets():
        for sound in target.sound:
            target.call(sound)
    sys.setprofile(None)
    return sorted(f"{os.path.relpath(file, ROOT / 'plugins')}::{name}" for file, name in called)


if __name__ == "__main__":
    print(json.dumps(reached()))
