# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One door to the sources that are written out, files or servers: a cluster, and for IAllocator messages a request.

The options are those of arguments.CLUSTER_ARGUMENTS; a ledger is read by plugin_utils/_bridge/cluster_source.py.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ..arguments import SourceType
from ..cluster.model import Cluster
from .iallocator import parse_iallocator, parse_json
from .inline import parse_inline
from .libvirt.documents import Reading as LibvirtReading
from .libvirt.documents import parse_libvirt, read_uris
from .libvirt.virsh import fetch_libvirt
from .loaded import Loaded
from .proxmox.documents import Reading, parse_proxmox
from .proxmox.server import Access, Wanted, fetch_proxmox
from .rapi import RESOURCES, fetch_rapi, parse_rapi
from .server import Server
from .text import parse_text

_READ_FROM: Mapping[SourceType, tuple[tuple[str, ...], tuple[str, ...]]] = {
    SourceType.GANETI_TEXT: (("path",), ()),
    SourceType.IALLOCATOR: (("path",), ()),
    SourceType.GANETI_RAPI: (("path", "url"), ()),
    SourceType.PROXMOX: ((), ("path", "url", "token_id", "token_secret", "ca_path", "load", "local_disks", "memory")),
    SourceType.LIBVIRT: (("uris",), ("local_disks", "shared_pools")),
    SourceType.LEDGER: ((), ("database", "aggregates")),
}
"""The options of which each type needs one, if it needs any, and the others that go with it."""


def load_cluster(arguments: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Loaded:
    """Return the cluster that arguments as in CLUSTER_ARGUMENTS name, with the request if the source carries one.

    `resolve` makes a path absolute. Raises InputError when the source cannot be read, or with all its mistakes, and
    Unavailable when a server does not answer.
    """
    if arguments.get("cluster") is not None:
        return Loaded(parse_inline(arguments["cluster"]), {})
    source = arguments.get("source")
    if source is None:
        # Ansible takes an option for given whose value is none.
        raise InputError([Mistake("cluster", "is empty; write a cluster out, or name its source")])
    check_source(source)
    kind = SourceType(source["type"])
    if kind == SourceType.PROXMOX:
        return Loaded(_proxmox(source, resolve), {})
    if kind == SourceType.LIBVIRT:
        reading = LibvirtReading(bool(source.get("local_disks")), source.get("shared_pools") or ())
        return Loaded(parse_libvirt(fetch_libvirt(read_uris(source["uris"]), source.get("timeout", 60.0)), reading), {})
    if source.get("url"):
        return Loaded(fetch_rapi(_server(source)), {})
    path = Path(resolve(source["path"]))
    if kind == SourceType.GANETI_TEXT:
        return Loaded(parse_text(_read(path)), {})
    if kind == SourceType.IALLOCATOR:
        return parse_iallocator(parse_json(_read(path)))
    documents = _documents(path)
    return Loaded(parse_rapi({name: documents.get(f"/{name}", documents.get(name)) for name in RESOURCES}), {})


def _proxmox(source: Mapping[str, t.Any], resolve: Callable[[str], str]) -> Cluster:
    """Return a Proxmox VE cluster, from files where a path is given."""
    load = source.get("load") or {}
    percentile = load.get("percentile")
    if percentile is not None and not 0 <= percentile <= 100:
        raise InputError([Mistake("source.load.percentile", f"is {percentile:g}; must be from 0 to 100")])
    reading = Reading(load.get("mode", ""), bool(source.get("local_disks")), source.get("memory") or Reading.memory, percentile)
    if source.get("path"):
        return parse_proxmox(_documents(Path(resolve(source["path"]))), reading)
    window = load.get("window", "hour") if reading.load not in ("", "assigned") else ""
    return parse_proxmox(fetch_proxmox(Access.of(source), Wanted(window)), reading)


def check_source(source: Mapping[str, t.Any]) -> None:
    """Raise InputError unless a source has what its type is read from, and nothing that another type is."""
    mistakes = Mistakes()
    kind = SourceType(source["type"])
    needed, others = _READ_FROM[kind]
    used = needed + others
    if needed and not any(source.get(name) for name in needed):
        mistakes.add("source", f"needs {' or '.join(needed)}, from which a source of type {kind} is read")
    for name in sorted({name for needed, others in _READ_FROM.values() for name in needed + others}):
        if name not in used and source.get(name):
            mistakes.add(f"source.{name}", f"does not go with a source of type {kind}, which is read from {' or '.join(used)}")
    mistakes.check()


def _server(source: Mapping[str, t.Any]) -> Server:
    return Server(
        url=source["url"],
        username=source.get("username") or "",
        password=source.get("password") or "",
        validate_certs=source.get("validate_certs", True),
        timeout=source.get("timeout", 60.0),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        says = f"cannot read {path}: {error.strerror or error}"
    except UnicodeDecodeError as error:
        says = f"{path} is not UTF-8 text: {error.reason} at byte {error.start}"
    except ValueError as error:
        says = f"{str(path)!r} cannot be the path of a file: {error}"
    raise InputError([Mistake("source.path", says)])


def _documents(path: Path) -> dict[str, t.Any]:
    """Return JSON documents by path: of one file that maps them, or of a directory with one file for each."""
    if not path.is_dir():
        documents = parse_json(_read(path))
        if isinstance(documents, dict):
            return documents
        raise InputError([Mistake("source.path", f"{path} must hold a mapping of documents by path")])
    mistakes = Mistakes()
    found = {}
    for file in sorted(path.rglob("*.json")):
        try:
            found[f"/{file.relative_to(path).with_suffix('').as_posix()}"] = parse_json(_read(file))
        except InputError as error:
            mistakes.add(str(file), str(error))
    if not found and not mistakes:
        mistakes.add("source.path", f"there is no JSON file in {path}")
    mistakes.check()
    return found
