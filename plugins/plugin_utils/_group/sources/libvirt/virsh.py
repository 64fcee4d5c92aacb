# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt, asked by `virsh` on the controller: what documents.py reads, by node. Only reads, with two calls for each node with few guests.

    documents = fetch_libvirt({"kvm1": "qemu+ssh://kvm1/system", "kvm2": "qemu+ssh://kvm2/system"}, timeout=60.0)

A node that does not answer gives `{"unreachable": "why"}`. Domains and pools are asked for by their UUIDs, so that no name that a host
gives becomes a part of a command. How much a node may answer, and of how many domains and pools, is limited.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import time
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .....module_utils._data.errors import InputError, Mistake, Unavailable

_AT_ONCE = 8
_LONGEST = 24 * 60 * 60
_LARGEST = 1 << 27
"""Bytes that are read at most of what a call prints."""
_CHUNK = 1 << 16
_TOO_LARGE = f"its answer is larger than {_LARGEST >> 20} MiB"
_MOST = 16_384
"""Domains, and pools, of a node: no libvirt lists more (REMOTE_DOMAIN_LIST_MAX, REMOTE_STORAGE_POOL_LIST_MAX)."""
_COMMANDS = 500
"""Commands in one call; the kernel takes 128 KiB in an argument."""
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
        second, still = _run_all(uri, asked, timeout)
        found = dict(zip(domains, second))
        unread = [uuid for uuid in still if not found.get(uuid, "").strip()]
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
    found = list(dict.fromkeys(line.strip() for line in listed.splitlines() if _UUID.fullmatch(line.strip())))
    if len(found) > _MOST:
        raise _Silent(f"it lists {len(found)} domains or pools, which is more than {_MOST}")
    return found


def _run_all(uri: str, commands: Sequence[str], timeout: float) -> tuple[list[str], list[str]]:
    """Return what each command prints, in as many calls as they need, and the domains that the node has at the end."""
    printed: list[str] = []
    for start in range(0, max(len(commands), 1), _COMMANDS):
        *answers, still = _run(uri, [*commands[start : start + _COMMANDS], "list --all --uuid"], timeout)
        printed += answers
        if sum(map(len, printed)) > _LARGEST:
            raise _Silent(_TOO_LARGE)
    return printed, _uuids(still)


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
    with process:
        try:
            output, errors = _printed(process, timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    parts = output.decode("utf-8", "replace").split(mark)
    if process.returncode or len(parts) != len(commands) + 1:
        raise _Silent(_reason(errors.decode("utf-8", "replace")) or "virsh gives no complete answer")
    return parts[1:]


def _printed(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """Return what a process prints and which errors, when it has ended. Raises _Silent when that takes too long, or is too much."""
    deadline = time.monotonic() + timeout
    streams = t.cast("list[t.IO[bytes]]", [process.stdout, process.stderr])
    found = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        for stream in _readable(selector, deadline):
            chunk = os.read(stream.fileno(), _CHUNK)
            found[stream] += chunk
            if not chunk:
                selector.unregister(stream)
            if len(found[stream]) > _LARGEST:
                raise _Silent(_TOO_LARGE)
    try:
        process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise _Silent(f"there is no complete answer after {timeout:g} s") from None
    output, errors = found.values()
    return bytes(output), bytes(errors)


def _readable(selector: selectors.BaseSelector, deadline: float) -> Iterator[t.IO[bytes]]:
    """Yield streams that can be read, until none is left or the time is over."""
    while selector.get_map() and (left := deadline - time.monotonic()) > 0:
        for key, _events in selector.select(left):
            yield t.cast("t.IO[bytes]", key.fileobj)


def _reason(errors: str) -> str:
    """Return the last of the errors that virsh prints, which says why, on one line."""
    lines = [line.removeprefix("error:").strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
