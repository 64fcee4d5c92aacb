# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs commands in a User Mode Linux: their numbers come and go on a serial line, all else is in a folder of the host.

In the folder of a number are `command`, a script for sh, and its input `in`; `out`, `err` and `rc` are written there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tty

LOCK = threading.Lock()


def carry_out(line, folder, number):
    place = os.path.join(folder, number)

    def file(name):
        return os.path.join(place, name)

    with open(file("in"), "rb") as given, open(file("out"), "wb") as out, open(file("err"), "wb") as errors:
        code = subprocess.call(["/bin/sh", file("command")], stdin=given, stdout=out, stderr=errors, cwd="/root")
        # A process that goes on in the background may still have them open.
        for opened in (out, errors):
            os.fsync(opened.fileno())
    with open(file("rc"), "w", encoding="ascii") as result:
        result.write(str(code))
    with LOCK:
        os.write(line, f"{number}\n".encode())


def main():
    folder, device = sys.argv[1:]
    with open("/proc/cmdline", encoding="ascii") as words:
        shared = next(word.partition("=")[2] for word in words.read().split() if word.startswith("commands="))
    os.makedirs(folder)
    subprocess.check_call(["mount", "-t", "hostfs", "none", folder, "-o", shared])
    line = os.open(device, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(line)
    os.write(line, b"ready\n")
    with os.fdopen(os.dup(line), encoding="ascii") as numbers:
        while True:
            number = numbers.readline()
            threading.Thread(target=carry_out, args=(line, folder, number.strip()), daemon=True).start()


if __name__ == "__main__":
    main()
