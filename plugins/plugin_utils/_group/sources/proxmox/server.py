# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE, asked by its API: the documents of documents.py by path. Only reads, and follows no redirect with its credentials.

    documents = fetch_proxmox(Access(url="https://pve1:8006", token_id="planner@pve!bareon", token_secret="..."), Wanted())

What it needs, anywhere in the cluster, is the role PVEAuditor on `/`: VM.Audit, Sys.Audit, Datastore.Audit and Pool.Audit. A server
silently leaves out what a user may not see, and a plan must not be made of half a cluster, so the rights are asked for first.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import os
import queue
import threading
import typing as t
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .....module_utils._data.errors import Mistakes, Unavailable
from .....module_utils._data.kinds import Name
from ...._common import libraries
from ...._common.urls import join_url
from .documents import RESOURCES
from .requirements import KINDS

RIGHTS: Mapping[str, tuple[str, ...]] = {
    "VM.Audit": ("/", "/vms"),
    "Sys.Audit": ("/",),
    "Datastore.Audit": ("/", "/storage"),
}
"""What must be seen of the whole cluster, and on any of which paths the right to it may be."""
_BELOW = {"VM.Audit": "/vms/", "Sys.Audit": "/nodes/", "Datastore.Audit": "/storage/"}
"""Paths where a right of its own, without these, would hide objects."""
_AWAY = frozenset({595, 596})
"""What a server answers for a node that it cannot reach."""
_AT_ONCE = 8
_TICKET = "/access/ticket"
_ENVIRONMENT = {
    "url": "PROXMOX_URL",
    "username": "PROXMOX_USER",
    "password": "PROXMOX_PASSWORD",
    "token_id": "PROXMOX_TOKEN_ID",
    "token_secret": "PROXMOX_TOKEN_SECRET",
    "ca_path": "PROXMOX_CA_PATH",
}


@dataclass(frozen=True)
class Access:
    """The server and the login: by a token, or by user and password. Secrets never get into messages."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    token_id: str = ""
    token_secret: str = field(default="", repr=False)
    ca_path: str = ""
    validate_certs: bool = True
    timeout: float = 60.0

    @classmethod
    def of(cls, source: Mapping[str, t.Any]) -> Access:
        """Return what a source's options say, else the environment; raise InputError when that is not enough."""
        given = {name: source.get(name) or os.environ.get(variable, "") for name, variable in _ENVIRONMENT.items()}
        access = cls(**given, validate_certs=source.get("validate_certs", True), timeout=source.get("timeout", 60.0))
        mistakes = Mistakes()
        if not 0 < access.timeout <= threading.TIMEOUT_MAX:
            mistakes.add("source.timeout", f"is {access.timeout:g}; must be seconds, more than 0")
        parts = urlsplit(access.url)
        if parts.scheme != "https" or not parts.hostname or parts.username:
            mistakes.add("source.url", "must be like https://pve1.example.com:8006, without a user in it")
        if bool(access.token_id) != bool(access.token_secret):
            mistakes.add("source", "needs both token_id and token_secret, or neither")
        elif access.token_id and "!" not in access.token_id and not access.username:
            mistakes.add("source.token_id", "must be like user@realm!name, or the name alone together with username")
        elif not access.token_id and not (access.username and access.password):
            mistakes.add("source", "needs token_id and token_secret, or username and password")
        mistakes.check()
        return access

    def options(self) -> dict[str, t.Any]:
        """Return what proxmoxer takes."""
        options: dict[str, t.Any] = {
            "host": urlsplit(self.url).netloc,
            "verify_ssl": (self.ca_path or True) if self.validate_certs else False,
            "timeout": self.timeout,
        }
        if not self.token_id:
            # Without a password or a token proxmoxer sends nothing of its own accord: the ticket is asked for below.
            return options | {"user": self.username, "token_name": "none", "token_value": "none"}
        user, _mark, name = self.token_id.rpartition("!")
        return options | {"user": user or self.username, "token_name": name, "token_value": self.token_secret}


@dataclass(frozen=True)
class Wanted:
    """Optional parts of the question: `window` is a time frame of rrddata (hour, day, week, ...), empty for no measured load."""

    window: str = ""


def fetch_proxmox(access: Access, wanted: Wanted) -> dict[str, t.Any]:
    """Return the documents of a cluster by path; raise Unavailable when it cannot be asked, or not by this user."""
    server = _Server.of(access)
    server.check_rights()
    usual = (RESOURCES, "/version", "/cluster/status", "/cluster/options", "/cluster/replication")
    documents = server.get_all([*usual, "/cluster/ha/resources", "/cluster/ha/status/manager_status"])
    release = str((documents.pop("/version") or {}).get("version") or "")
    # Release 9 has turned the groups of 8 into rules; each refuses the other's path.
    documents |= server.get_all(["/cluster/ha/groups" if release.startswith(("7", "8")) else "/cluster/ha/rules"])
    documents |= server.get_all([] if release.startswith("7") else [f"/cluster/mapping/{kind}" for kind in KINDS])
    resources = [entry for entry in documents[RESOURCES] or () if isinstance(entry, Mapping)]
    _check_names(resources)
    nodes = [str(entry.get("node")) for entry in resources if entry.get("type") == "node" and entry.get("status") == "online"]
    guests = [
        join_url("", "nodes", entry["node"], entry["type"], entry.get("vmid"))
        for entry in resources
        if entry.get("type") in ("qemu", "lxc") and not entry.get("template") and entry.get("node") in nodes
    ]
    asked = (("storage",), ("status",), ("capabilities", "qemu", "machines"))
    documents |= server.get_all(join_url("", "nodes", node, *names) for node in nodes for names in asked)
    documents |= server.get_all(f"{guest}/config" for guest in guests)
    if wanted.window:
        documents |= server.get_all((f"{guest}/rrddata" for guest in guests), timeframe=wanted.window, cf="AVERAGE")
    return {**documents, RESOURCES: [_seen(entry, server.away) for entry in resources]}


def _check_names(resources: Iterable[Mapping[str, t.Any]]) -> None:
    """Raise InputError for names of nodes that are none, before anything is asked by them."""
    mistakes = Mistakes()
    named = {"node": ("node",), "qemu": ("node", "vmid"), "lxc": ("node", "vmid")}
    for position, entry in enumerate(resources):
        for key in named.get(str(entry.get("type")), ()):
            try:
                Name().read(entry.get(key))
            except ValueError as error:
                mistakes.add(f"{RESOURCES}[{position}].{key}", str(error))
    mistakes.check()


def _seen(entry: Mapping[str, t.Any], away: Collection[t.Any]) -> dict[str, t.Any]:
    """Return a resource; of a node that did not answer, and of its guests, nothing is known, whatever was said before."""
    if entry.get("node") not in away:
        return dict(entry)
    return {**entry, "status": "offline" if entry.get("type") == "node" else "unknown"}


@dataclass(frozen=True)
class _Server:
    """A session; `away` are nodes that were said to be online and did not answer."""

    url: str
    api: t.Any
    away: set[str]
    timeout: float

    @classmethod
    def of(cls, access: Access) -> _Server:
        """Return a session, begun with a ticket where a password is given."""
        proxmoxer, _requests = libraries.proxmoxer, libraries.requests
        libraries.refuse_missing("proxmox")
        url = f"https://{urlsplit(access.url).netloc}"
        api = proxmoxer.ProxmoxAPI(**access.options())
        session = api._store["session"]
        session.max_redirects = 0
        if not access.token_id:
            session.auth = _asked(url, _TICKET, access.timeout, lambda: _ticket(url, access))
        return cls(url, api, set(), access.timeout)

    def check_rights(self) -> None:
        """Raise Unavailable unless all of the cluster may be seen."""
        rights_of = _asked(self.url, "/access/permissions", self.timeout, lambda: self.api("access/permissions").get())
        held = {path: rights for path, rights in rights_of.items() if isinstance(rights, Mapping)} if isinstance(rights_of, Mapping) else {}
        # The value of a right is whether it holds for the paths below.
        lacking = [f"{right} on /" for right, paths in RIGHTS.items() if not any(held.get(path, {}).get(right) for path in paths)]
        below = [(path, rights, right) for path, rights in held.items() for right, start in _BELOW.items() if path.startswith(start)]
        lacking += [f"{right} on {path}" for path, rights, right in below if right not in rights]
        if lacking:
            raise Unavailable(
                f"{self.url} would hide a part of the cluster from this user, which lacks {', '.join(lacking)}; the role PVEAuditor "
                "on /, with all below it, has all that planning needs (of a token with privilege separation, give it to the token, too)"
            )

    def get_all(self, paths: Iterable[str], **parameters: str) -> dict[str, t.Any]:
        """Return the answers by path; what a node does not answer is left out."""
        wanted = list(paths)
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(pool.map(lambda path: self._get(path, parameters), wanted))
        return {path: answer for path, answer in zip(wanted, answers) if answer is not None}

    def _get(self, path: str, parameters: Mapping[str, str]) -> t.Any:
        parts = path.strip("/").split("/")
        if parts[0] == "nodes" and parts[1] in self.away:
            return None
        try:
            return _asked(self.url, path, self.timeout, lambda: self.api(path.strip("/")).get(**parameters))
        except _Away:
            self.away.add(parts[1])
            return None


def _ticket(url: str, access: Access) -> t.Any:
    """Return what a session is authorized by that a user and a password have begun.

    proxmoxer would follow a redirect with the password, wherever it leads.
    """
    proxmoxer, requests = libraries.proxmoxer, libraries.requests
    options = access.options()
    with requests.Session() as session:
        session.max_redirects = 0
        given = {"username": access.username, "password": access.password}
        answer = session.post(f"{url}/api2/json{_TICKET}", data=given, verify=options["verify_ssl"], timeout=access.timeout)
    if answer.status_code != 200:
        raise proxmoxer.AuthenticationError(f"answered {answer.status_code}")
    ticket = answer.json()["data"]
    if ticket.get("NeedTFA"):
        raise Unavailable(f"{url} wants a second factor of this user; give a token instead")
    base = importlib.import_module("proxmoxer.backends.https").ProxmoxHTTPAuthBase
    authorized = base(timeout=access.timeout, verify_ssl=options["verify_ssl"])
    cookies = requests.cookies.cookiejar_from_dict({"PVEAuthCookie": ticket["ticket"]})
    authorized.get_cookies = lambda: cookies
    return authorized


class _Away(Exception):
    """A node does not answer."""


def _in_time(timeout: float, ask: t.Callable[[], t.Any]) -> t.Any:
    """Return an answer, or raise what `ask` does; raise TimeoutError when there is no whole one in time.

    The timeout of `requests` starts again with each byte. In a thread, which ends with the process at the latest.
    """
    found: queue.SimpleQueue[tuple[t.Any, Exception | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            found.put((ask(), None))
        except Exception as error:  # the waiting thread raises it again
            found.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = found.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return answer


def _asked(url: str, path: str, timeout: float, ask: t.Callable[[], t.Any]) -> t.Any:
    """Return an answer; raise Unavailable with one sentence, _Away for a node that the server cannot reach."""
    requests, proxmoxer = libraries.requests, libraries.proxmoxer
    try:
        return _in_time(timeout, ask)
    except proxmoxer.AuthenticationError as error:
        raise Unavailable(f"{url} rejects this user or password") from error
    except proxmoxer.ResourceException as error:
        if error.status_code in _AWAY and path.startswith("/nodes/"):
            raise _Away from error
        if error.status_code == 401:
            raise Unavailable(f"{url} rejects this user or token (401 {error.content})") from error
        raise Unavailable(f"{url} answers {error.status_code} {error.content} for {path}") from error
    except requests.exceptions.SSLError as error:
        raise Unavailable(
            f"the certificate of {url} cannot be trusted; give its authority as ca_path, which is /etc/pve/pve-root-ca.pem on any node, "
            f"unless it has another ({_reason(error)})"
        ) from error
    except (requests.exceptions.Timeout, TimeoutError) as error:
        raise Unavailable(f"{url} does not answer {path} in time: there is no complete answer after {timeout:g} s") from error
    except requests.exceptions.TooManyRedirects as error:
        raise Unavailable(f"{url} redirects {path} elsewhere; redirects are not followed, so give the right address in url") from error
    except (requests.exceptions.RequestException, OSError) as error:
        raise Unavailable(f"cannot ask {url}: {_reason(error)}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"{url} does not answer {path} as Proxmox VE does") from error


def _reason(error: BaseException) -> str:
    """Return what is at the bottom of an error, in its own words."""
    below = error.args[0] if error.args else error
    reason = getattr(below, "reason", below)
    return str(reason).rpartition(": ")[2] or type(error).__name__
