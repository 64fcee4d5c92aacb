# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt, asked by `virsh` on the controller: what documents.py reads, by node. Only reads, with two calls for each node.

    documents = fetch_libvirt({"kvm1": "qemu+ssh://kvm1/system", "kvm2": "qemu+ssh://kvm2/system"}, timeout=60.0)

A node that does not answer gives `{"unreachable": "why"}`. Domains and pools are asked for by their UUIDs, so that no name that a host
gives becomes a part of a command.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import typing as t
from collections.abc import Mapping, Sequence

from .....module_utils._data.errors import InputError, Mistake, Unavailable

_AT_ONCE = 8
_LONGEST = 24 * 60 * 60
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_NODE: Mapping[str, str] = {
    "nodeinfo": "nodeinfo",
    "nodememstats": "nodememstats",
    "freepages": "freepages --all",
    "capabilities": "capabilities",
    "domcapabilities": "domcapabilities",
    "networks": "net-list --name",
    "snapshots": "list --all --with-snapshot --uuid",
    "domstats": "domstats --state --balloon --block",
}
"""The commands whose output is a document of a node, by its name."""


def fetch_libvirt(uris: Mapping[str, str], timeout: float) -> dict[str, t.Any]:
    """Return what each node answers; raise Unavailable when none does, or there is no virsh. `timeout` is seconds for each call."""
    if not 0 < timeout <= _LONGEST:
        raise InputError([Mistake("source.timeout", f"is {timeout:g}; must be seconds, more than 0 and at most {_LONGEST}")])
    if shutil.which("virsh") is None:
        raise Unavailable("cannot ask libvirt: the controller has no program virsh, which is in the package libvirt-clients")
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda uri: _ask_node(uri, timeout), uris.values()))
    documents = dict(zip(uris, answers))
    if documents and all("unreachable" in answer for answer in documents.values()):
        raise Unavailable("no node answers: " + "; ".join(f"{node}: {answer['unreachable']}" for node, answer in documents.items()))
    return documents


def _ask_node(uri: str, timeout: float) -> dict[str, t.Any]:
    """Return all that a node answers."""
    try:
        *first, pool_ids, listed = _run(uri, [*_OF_NODE.values(), "pool-list --uuid", "list --all --uuid"], timeout)
        domains, pools = _uuids(listed), _uuids(pool_ids)
        asked = [f"dumpxml {uuid}" for uuid in domains]
        asked += [command.format(uuid) for command in ("pool-dumpxml {}", "vol-list {} --details") for uuid in pools]
        *second, still = _run(uri, [*asked, "list --all --uuid"], timeout)
        found = dict(zip(domains, second))
        unread = [uuid for uuid in _uuids(still) if not found.get(uuid, "").strip()]
        if unread:
            raise _Silent(f"it does not describe its domain {unread[0]}")
    except _Silent as error:
        return {"unreachable": str(error)}
    described = second[len(domains) :]
    # What has gone between the two calls gives nothing.
    there = [(xml, volumes) for xml, volumes in zip(described[: len(pools)], described[len(pools) :]) if xml.strip()]
    return {
        **dict(zip(_OF_NODE, first)),
        "domains": [text for text in found.values() if text.strip()],
        "pools": [xml for xml, _volumes in there],
        "volumes": [volumes for _xml, volumes in there],
    }


def _uuids(listed: str) -> list[str]:
    return [line.strip() for line in listed.splitlines() if _UUID.fullmatch(line.strip())]


class _Silent(Exception):
    """A node does not answer."""


def _run(uri: str, commands: Sequence[str], timeout: float) -> list[str]:
    """Return what each command prints, in one connection. One that fails prints nothing, but the last one must not fail.

    The mark between the answers is drawn for this call, so that no host can write it.
    """
    mark = f"bareon-{secrets.token_hex(16)}"
    script = "; ".join(part for command in commands for part in (f"echo {mark}", command))
    # A session of its own has no terminal that ssh could ask at.
    process = subprocess.Popen(
        ["virsh", "--quiet", "--connect", uri, script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise _Silent(f"there is no complete answer after {timeout:g} s") from None
    parts = output.decode("utf-8", "replace").split(mark)
    if process.returncode or len(parts) != len(commands) + 1:
        raise _Silent(_reason(errors.decode("utf-8", "replace")) or "virsh gives no complete answer")
    return parts[1:]


def _reason(errors: str) -> str:
    """Return the last of the errors that virsh prints, which says why, on one line."""
    lines = [line.removeprefix("error:").strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
