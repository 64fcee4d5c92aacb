#!/usr/bin/env python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for pvesh and ha-manager on a node of Proxmox VE, which ask the stand-in of its API (tests/support/group/proxmox).

    proxmox_node.py install BIN URL CA_PATH   # writes the commands into BIN

`pvesh` waits for the task that it begins and ends with 0 however that has ended, as the real one may.
"""

from __future__ import annotations

import json
import pathlib
import ssl
import stat
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

COMMANDS = ("pvesh", "ha-manager")
TOKEN = "PVEAPIToken=mover@pve!bareon=m0ve"


class Server:
    """The API of the cluster."""

    def __init__(self, url: str, ca_path: str) -> None:
        self.url, self.context = url, ssl.create_default_context(cafile=ca_path)

    def ask(self, method: str, path: str, options: dict[str, str]) -> object:
        """Return the data of an answer; raise OSError where the server refuses."""
        words = urllib.parse.urlencode(options)
        address = f"{self.url}/api2/json{path}" + (f"?{words}" if method == "GET" and words else "")
        body = words.encode() if method != "GET" else None
        request = urllib.request.Request(address, body, {"Authorization": TOKEN}, method=method)
        with urllib.request.urlopen(request, context=self.context, timeout=60) as answer:
            return json.load(answer)["data"]


def pvesh(server: Server, arguments: list[str]) -> int:
    """Answer `get PATH` and `create PATH` with options."""
    verb, path, *rest = arguments
    given = [part for word in rest for part in word.split("=", 1)]
    options = dict(zip((name.removeprefix("--") for name in given[::2]), given[1::2]))
    shown = options.pop("output-format", "text")
    try:
        data = server.ask({"get": "GET", "create": "POST"}[verb], path, options)
        while isinstance(data, str) and data.startswith("UPID:"):
            task = server.ask("GET", f"/nodes/{data.split(':')[1]}/tasks/{urllib.parse.quote(data, safe='')}/status", {})
            if task["status"] == "stopped":
                print(task["exitstatus"])
                return 0
            time.sleep(0.1)
    except urllib.error.HTTPError as error:
        print(f"{error.reason}\n{error.read().decode()}", file=sys.stderr)
        return 2
    print(json.dumps(data) if shown == "json" else data)
    return 0


def ha_manager(server: Server, arguments: list[str]) -> int:
    """Answer `crm-command node-maintenance enable|disable NODE`, which the API has no path for."""
    if arguments[:2] != ["crm-command", "node-maintenance"] or arguments[2] not in ("enable", "disable") or len(arguments) != 4:
        print(f"ERROR: unknown command 'ha-manager {' '.join(arguments)}'", file=sys.stderr)
        return 255
    server.ask("POST", "/command/node-maintenance", {"what": arguments[2], "node": arguments[3]})
    return 0


def main(arguments: list[str]) -> int:
    """Be what the first argument says."""
    what, *rest = arguments
    if what == "install":
        folder = pathlib.Path(rest[0])
        folder.mkdir(parents=True, exist_ok=True)
        for command in COMMANDS:
            script = folder / command
            script.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(__file__).resolve()}" {command} "{rest[1]}" "{rest[2]}" "$@"\n'
            )
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return 0
    return {"pvesh": pvesh, "ha-manager": ha_manager}[what](Server(rest[0], rest[1]), rest[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
