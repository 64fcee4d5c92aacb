#!/usr/bin/env python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for gnt-instance, gnt-node, gnt-job, virsh, pvesh, and for the servers of Ganeti's RAPI and Proxmox VE.

    cluster.py install BIN STATE     # writes commands into BIN that work on the file STATE
    cluster.py serve STATE PORTFILE  # answers both APIs on 127.0.0.1 until it is terminated

STATE is JSON: `instances` by name with their `nodes` (and for Proxmox VE `id`), `offline` with the nodes that are marked so,
`silent` if nobody answers about nodes, `fail` with words of steps that are to fail and how often, `polls` until a job has
ended, `seconds` that a command takes. What is done is appended to `log`. The stand-ins refuse what the real ones would: a
mirror on a node that the instance is on, a move of what is elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import re
import stat
import sys
import time
import typing as t
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

COMMANDS = ("gnt-instance", "gnt-node", "gnt-job", "virsh", "pvesh")
USER = "mover:secret"
TOKEN = "PVEAPIToken=mover@pve!plan=secret"


class RefusedError(Exception):
    """What was asked for cannot be done."""


class StandIn:
    """The cluster in a file that several processes may use."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)

    @contextlib.contextmanager
    def open(self) -> Iterator[dict[str, t.Any]]:
        """Yield the state, locked; what is changed in it is kept."""
        with self.path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = json.load(file)
            for name, default in {"jobs": {}, "log": [], "fail": {}, "offline": [], "silent": False, "polls": 0, "seconds": 0}.items():
                state.setdefault(name, default)
            yield state
            file.seek(0)
            file.truncate()
            json.dump(state, file, indent=1)

    def submit(self, words: list[str]) -> str:
        """Return the number of a job that carries a step out."""
        with self.open() as state:
            number = str(len(state["jobs"]) + 17)
            state["jobs"][number] = {"words": words, "polls": state["polls"], "status": "queued", "says": ""}
            state["log"].append(f"submit {' '.join(words)}")
        return number

    def job(self, number: str) -> dict[str, t.Any]:
        """Return a job; each question brings it nearer to its end."""
        with self.open() as state:
            job = state["jobs"][number]
            if job["status"] in ("success", "error"):
                return job
            job["polls"] -= 1
            job["status"] = "running"
            if job["polls"] < 0:
                try:
                    carry_out(state, job["words"])
                    job["status"] = "success"
                except RefusedError as error:
                    job.update(status="error", says=str(error))
            return job


def carry_out(state: dict[str, t.Any], words: list[str]) -> None:
    """Do `migrate|failover INSTANCE [NODE]` or `replace-disks INSTANCE NODE`, or raise RefusedError."""
    line = " ".join(words)
    for pattern, times in state["fail"].items():
        if times and re.search(pattern, line):
            state["fail"][pattern] = times - 1
            state["log"].append(f"fail {line}")
            raise RefusedError(f"told to fail: {line}")
    kind, name, *target = words
    nodes = state["instances"].get(name, {}).get("nodes")
    if nodes is None:
        raise RefusedError(f"there is no {name}")
    if kind == "replace-disks":
        if len(nodes) != 2 or target[0] in nodes:
            raise RefusedError(f"{name} is on {nodes}; its mirror cannot go to {target}")
        after = [nodes[0], target[0]]
    elif len(nodes) == 2:
        if target:
            raise RefusedError(f"{name} is mirrored; it goes to its secondary only")
        after = nodes[::-1]
    else:
        if not target or target[0] in nodes:
            raise RefusedError(f"{name} is on {nodes}; it cannot go to {target}")
        after = target
    state["instances"][name]["nodes"] = after
    state["log"].append(f"done {line}")


def at_once(cluster: StandIn, words: list[str], node: str | None = None) -> int:
    """Carry a step out while the caller waits, `node` being where it is asked for; return the exit code."""
    with cluster.open() as state:
        state["log"].append(f"begin {' '.join(words)}")
        seconds = state["seconds"]
    time.sleep(seconds)
    with cluster.open() as state:
        try:
            if node is not None and node not in state["instances"].get(words[1], {}).get("nodes", []):
                raise RefusedError(f"{words[1]} is not on {node}")
            carry_out(state, words)
        except RefusedError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def asked(question: str) -> bool:
    """Ask on the terminal, as Ganeti does, not on the standard input."""
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:
            terminal.write(f"{question} y/[n]: ".encode())
            return terminal.readline().strip().lower() == b"y"
    except OSError:
        return False


def gnt_instance(cluster: StandIn, arguments: list[str]) -> int:
    """Answer as Ganeti's command does: options stand before the name, and steps must be submitted.

    Whether consistency is to be ignored is asked on the terminal, whatever the options say; without one the answer is no.
    """
    if arguments[0] == "list":
        with cluster.open() as state:
            for name, instance in state["instances"].items():
                print(f"{name}|{instance['nodes'][0]}|{','.join(instance['nodes'][1:])}")
        return 0
    kind, *rest = arguments
    options, target = [], []
    while rest and rest[0].startswith("-"):
        options.append(rest.pop(0))
        if options[-1] == "-n":
            target = [rest.pop(0)]
    names = rest
    if len(names) != 1:
        print(f"Error: Command {kind} expects 1 argument(s)", file=sys.stderr)
        return 1
    if "--submit" not in options:
        print(f"not understood: {arguments}", file=sys.stderr)
        return 1
    if "--ignore-consistency" in options and not asked("Is the source node marked offline?"):
        return 1
    if re.search("unknown", names[0]):
        print(f"Failure: prerequisites not met: {names[0]}", file=sys.stderr)
        return 1
    # Newer versions of Ganeti name the job on the standard error output.
    print(f"JobID: {cluster.submit([kind, names[0], *target])}", file=sys.stderr)
    return 0


def gnt_node(cluster: StandIn, arguments: list[str]) -> int:
    """Answer `gnt-node list --no-headers --separator=| --output=name,offline NODE` with Y or N, as Ganeti writes what is true or false."""
    if arguments[:-1] != ["list", "--no-headers", "--separator=|", "--output=name,offline"]:
        print(f"not understood: {arguments}", file=sys.stderr)
        return 1
    with cluster.open() as state:
        if state["silent"]:
            print("Cannot communicate with the master daemon.", file=sys.stderr)
            return 1
        if arguments[-1] not in nodes_of(state):
            print(f"Failure: prerequisites not met for this operation:\nNodes not found: {arguments[-1]}", file=sys.stderr)
            return 1
        print(f"{arguments[-1]}|{'Y' if arguments[-1] in state['offline'] else 'N'}")
    return 0


def nodes_of(state: dict[str, t.Any]) -> set[str]:
    """Return the nodes that instances are on."""
    return {node for instance in state["instances"].values() for node in instance["nodes"]}


def gnt_job(cluster: StandIn, arguments: list[str]) -> int:
    """Answer `gnt-job list --no-headers --separator=| --output=status,opresult NUMBER`."""
    if arguments[:-1] != ["list", "--no-headers", "--separator=|", "--output=status,opresult"]:
        print(f"not understood: {arguments}", file=sys.stderr)
        return 1
    job = cluster.job(arguments[-1])
    print(f"{job['status']}|{[job['says']]}")
    return 0


def virsh(cluster: StandIn, arguments: list[str]) -> int:
    """Answer `list` and `migrate`; the node that is asked is the URI's path, as in `test:///node1`."""
    node = urlsplit(arguments[arguments.index("--connect") + 1]).path.strip("/")
    if "list" in arguments:
        with cluster.open() as state:
            print("\n".join(name for name, instance in state["instances"].items() if instance["nodes"] == [node]))
        return 0
    kind = "migrate" if "--live" in arguments else "failover"
    return at_once(cluster, [kind, arguments[-2], urlsplit(arguments[-1]).path.strip("/")], node)


def guests(state: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return what Proxmox VE lists; instances are named by number and name."""
    found = []
    for name, instance in state["instances"].items():
        kind, number = instance["id"].split("/")
        entry = {"id": instance["id"], "type": kind, "vmid": int(number), "node": instance["nodes"][0]}
        own = name.partition("-")[2]
        found.append(entry | ({"name": own} if own else {}))
    return found


def named(state: dict[str, t.Any], guest: str) -> str:
    """Return the name of the instance of a guest, `qemu/100`."""
    return next(name for name, instance in state["instances"].items() if instance["id"] == guest)


def pvesh(cluster: StandIn, arguments: list[str]) -> int:
    """Answer `get /cluster/resources` and `create /nodes/NODE/GUEST/migrate`; like the real one it hides some failures."""
    if arguments[0] == "get":
        with cluster.open() as state:
            print(json.dumps([] if arguments[1].endswith("/tasks") else guests(state)))
        return 0
    _root, _nodes, node, kind, number, _migrate = arguments[1].split("/")
    options = dict(zip(arguments[2::2], arguments[3::2]))
    with cluster.open() as state:
        name = named(state, f"{kind}/{number}")
        state["log"].append(f"options {json.dumps(options, sort_keys=True)}")
    at_once(cluster, ["migrate", name, options["--target"]], node)
    return 0


def install(folder: pathlib.Path, state: pathlib.Path) -> None:
    """Write the commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in COMMANDS:
        script = folder / command
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{pathlib.Path(__file__).resolve()}" {command} "{state}" "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)


def server(cluster: StandIn) -> http.server.ThreadingHTTPServer:
    """Return a server of both APIs on a free port of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(self._get)

        def do_PUT(self) -> None:
            self._answer(self._submit)

        def do_POST(self) -> None:
            self._answer(self._submit)

        def _answer(self, handle: t.Callable[[list[str]], t.Any]) -> None:
            parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
            expected = TOKEN if parts[0] == "api2" else f"Basic {base64.b64encode(USER.encode()).decode()}"
            # As Ganeti does it: `message` is the reason, `explain` what HTTP means by the number.
            status, told = 401, {"code": 401, "message": "who are you?", "explain": "No permission -- see authorization schemes"}
            if self.headers.get("Authorization") == expected:
                try:
                    status, told = 200, handle(parts)
                except (KeyError, IndexError, StopIteration) as error:
                    status, told = 404, {"message": f"nothing at {self.path} ({error!r})", "explain": "Nothing matches the given URI"}
            body = json.dumps({"data": told} if parts[0] == "api2" else told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _get(self, parts: list[str]) -> t.Any:
            if parts == ["2", "instances"]:
                with cluster.open() as state:
                    entries = state["instances"].items()
                    return [{"name": name, "pnode": one["nodes"][0], "snodes": one["nodes"][1:]} for name, one in entries]
            if parts[:2] == ["2", "nodes"]:
                with cluster.open() as state:
                    if parts[2] not in nodes_of(state) or state["silent"]:
                        raise KeyError(parts[2])
                    return {"name": parts[2], "offline": parts[2] in state["offline"], "drained": False}
            if parts[:2] == ["2", "jobs"]:
                job = cluster.job(parts[2])
                return {"id": parts[2], "status": job["status"], "opresult": [job["says"]]}
            if parts == ["api2", "json", "cluster", "resources"]:
                with cluster.open() as state:
                    return guests(state)
            if len(parts) == 5 and parts[4].partition("?")[0] == "tasks":
                return []
            job = cluster.job(parts[5].split(":")[-1])
            if job["status"] in ("success", "error"):
                return {"status": "stopped", "exitstatus": "OK" if job["status"] == "success" else job["says"]}
            return {"status": "running"}

        def _submit(self, parts: list[str]) -> t.Any:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            if parts[0] == "2":
                body = json.loads(text)
                with cluster.open() as state:
                    state["log"].append(f"{self.command} {parts[3]} {json.dumps(body, sort_keys=True)}")
                    state["instances"][parts[2]]
                target = body.get("remote_node") or body.get("target_node")
                return int(cluster.submit([parts[3], parts[2], *([target] if target else [])]))
            options = {name: values[0] for name, values in parse_qs(text).items()}
            with cluster.open() as state:
                name = named(state, f"{parts[4]}/{parts[5]}")
                state["log"].append(f"options {json.dumps(options, sort_keys=True)}")
            return f"UPID:{parts[3]}:{cluster.submit(['migrate', name, options['target']])}"

        def log_message(self, *_arguments: t.Any) -> None:
            """Keep quiet."""

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def main(arguments: list[str]) -> int:
    """Be what the first argument says."""
    what, *rest = arguments
    if what == "install":
        install(pathlib.Path(rest[0]), pathlib.Path(rest[1]).resolve())
        return 0
    cluster = StandIn(rest[0])
    if what == "serve":
        serving = server(cluster)
        pathlib.Path(rest[1]).write_text(json.dumps({"port": serving.server_port, "pid": os.getpid()}))
        serving.serve_forever()
    commands = {"gnt-instance": gnt_instance, "gnt-node": gnt_node, "gnt-job": gnt_job, "virsh": virsh, "pvesh": pvesh}
    return commands[what](cluster, rest[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
