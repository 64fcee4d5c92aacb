# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a module several times, each in a process of its own: an emulated processor takes seconds to import what it needs.

JSON from stdin, `{"module": name, "runs": [arguments]}`, to JSON on stdout: what each run printed, in this order.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tempfile


def run(module, arguments):
    """Return what a module prints when it gets these arguments."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()))
            try:
                module.main()
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)
        output.seek(0)
        return output.read().decode()


def main():
    task = json.load(sys.stdin)
    module = importlib.import_module(f"ansible_collections.bareon.allocator.plugins.modules.{task['module']}")
    json.dump([run(module, arguments) for arguments in task["runs"]], sys.stdout)


if __name__ == "__main__":
    main()
