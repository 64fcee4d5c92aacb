# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for a Proxmox VE cluster: no guest runs here. It answers by TLS, and refuses what the published API refuses.

    with serving(small_cluster()) as (url, ca_path): ...

Which calls there are, their parameters, permissions and results, comes from proxmox_api.py. What is only known of the real server's
behaviour is written here: tokens and tickets (401), nodes that are away (595), tasks with UPIDs that take time, and guests under HA,
whose `migrate` is a task that ends at once, while the guest moves later.
"""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import json
import pathlib
import ssl
import tempfile
import threading
import time
import urllib.parse
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from .proxmox_api import Refused, check_answer, find_call, permit, verify

GIB = 2**30
AUDITOR = {"Datastore.Audit", "Mapping.Audit", "Pool.Audit", "SDN.Audit", "Sys.Audit", "VM.Audit"}
"""The role PVEAuditor."""
MOVER = AUDITOR | {"VM.Migrate", "Sys.Console", "VM.Config.Disk", "Datastore.AllocateSpace"}


@dataclass
class Guest:
    """A machine or a container."""

    vmid: int
    node: str
    name: str = ""
    kind: str = "qemu"
    status: str = "running"
    memory: int = 4
    """GiB"""
    used: float = 1.0
    """GiB that it really uses."""
    cores: int = 2
    cpu: float = 0.1
    pressure: float = 0.0
    config: dict = field(default_factory=lambda: {"scsi0": "ceph:vm-disk-0,size=10G"})
    tags: str = ""
    pool: str = ""
    template: bool = False
    ha: str = ""
    """The state that HA is asked for; empty where HA does not manage it."""
    fails: str = ""
    """How its migrations fail."""
    lock: str = ""

    @property
    def sid(self) -> str:
        """How HA calls it."""
        return f"{'vm' if self.kind == 'qemu' else 'ct'}:{self.vmid}"


@dataclass
class Machine:
    """A node."""

    memory: int = 64
    """GiB"""
    cpus: int = 16
    online: bool = True
    away: bool = False
    """It is said to be online, but does not answer."""
    maintenance: bool = False
    storages: dict = field(default_factory=lambda: {"ceph": {"shared": 1}, "local-lvm": {"shared": 0}, "local": {"content": "iso"}})
    cpu_model: str = "Intel(R) Xeon(R) Gold 6130"
    flags: str = "fpu sse2 avx2 avx512f"


class Cluster:
    """What the calls are answered from, and what they change."""

    def __init__(self, machines: dict[str, Machine], guests: list[Guest], **options: object) -> None:
        self.machines, self.guests = machines, {guest.vmid: guest for guest in guests}
        self.rules: list[dict] = []
        self.ha_groups: list[dict] = []
        self.options: dict = {}
        self.version = "9.1"
        self.tokens = {"auditor@pve!bareon": ("s3cret", {"/": AUDITOR}), "mover@pve!bareon": ("m0ve", {"/": MOVER})}
        self.passwords = {"auditor@pve": ("word", {"/": AUDITOR})}
        self.task_seconds, self.ha_seconds = 0.3, 0.6
        self.tasks: dict[str, dict] = {}
        self.calls: list[tuple[str, str]] = []
        self.started: list[tuple[int, str]] = []
        """Every migration that was begun: guest and target."""
        self.maintained: list[tuple[str, str]] = []
        """What HA's maintenance mode was told: enable or disable, and a node."""
        self._lock, self._pending, self._tickets = threading.RLock(), [], {}
        self._left: dict[int, str] = {}
        self._ha_moving: set[int] = set()
        vars(self).update(options)

    # The door: published rules first, then what is behind it.

    def answer(self, method: str, path: str, given: dict[str, str], headers: dict) -> object:
        """Return the data of a call, or raise Refused."""
        with self._lock:
            self._advance()
            if path == "/command/node-maintenance":
                return self._node_maintenance(given["what"], given["node"])
            call, names = find_call(method, path)
            self.calls.append((method, call["path"]))
            user, rights = self._user(headers, call)
            verify(call, {**names, **given})
            permit(call, names, lambda where, privilege: _may(rights, where, privilege))
            machine = self.machines.get(names.get("node", ""))
            if "node" in names and (machine is None or machine.away or not machine.online):
                raise Refused(595, "No route to host") if machine else Refused(500, f"hostname lookup '{names['node']}' failed")
            behind = _NAMES.get((method, call["path"]))
            if behind is None:
                raise Refused(501, f"the stand-in has nothing behind {method} {call['path']}")
            data = getattr(self, behind)(names, given, user, rights)
            check_answer(call, data)
            return data

    def _user(self, headers: dict, call: dict) -> tuple[str, dict]:
        said = headers.get("Authorization", "")
        if said.startswith("PVEAPIToken=") and call.get("allowtoken"):
            name, _sign, secret = said.removeprefix("PVEAPIToken=").partition("=")
            if self.tokens.get(name, ("", {}))[0] == secret and secret:
                return name, self.tokens[name][1]
        for cookie in headers.get("Cookie", "").split(";"):
            user = self._tickets.get(cookie.strip().removeprefix("PVEAuthCookie="))
            if user:
                if call["method"] != "GET" and headers.get("CSRFPreventionToken") != "csrf":
                    raise Refused(401, "Permission denied - invalid csrf token")
                return user, self.passwords[user][1]
        if (call["permissions"] or {}).get("user") == "world":
            return "", {}
        raise Refused(401, "authentication failure" if said else "No ticket")

    def _advance(self) -> None:
        """Let happen what is due."""
        now = time.monotonic()
        due = [item for item in self._pending if item[0] <= now]
        self._pending = [item for item in self._pending if item[0] > now]
        for _when, happen in sorted(due, key=lambda item: item[0]):
            happen()

    def _task(self, node: str, kind: str, vmid: int, user: str, seconds: float, end: callable) -> str:
        """Return the UPID of a task that ends after a time, with what `end` returns."""
        number = len(self.tasks) + 1
        began = int(time.time())
        upid = f"UPID:{node}:{number:08X}:{number:08X}:{began:08X}:{kind}:{vmid}:{user}:"
        task = {
            "upid": upid,
            "node": node,
            "pid": number,
            "pstart": number,
            "starttime": began,
            "type": kind,
            "id": str(vmid),
            "user": user,
        }
        self.tasks[upid] = task | {"status": "running"}

        def finish() -> None:
            self.tasks[upid] |= {"status": "stopped", "exitstatus": end(), "endtime": int(time.time())}

        self._pending.append((time.monotonic() + seconds, finish))
        if not seconds:
            self._advance()
        return upid

    # What is behind the calls.

    def _ticket(self, _names, given, _user, _rights):
        if self.passwords.get(given["username"], ("",))[0] != given["password"]:
            raise Refused(401, "authentication failure")
        ticket = f"PVE:{given['username']}:{len(self._tickets):08X}"
        self._tickets[urllib.parse.quote(ticket, safe="")] = self._tickets[ticket] = given["username"]
        return {"ticket": ticket, "CSRFPreventionToken": "csrf", "username": given["username"]}

    def _version(self, *_):
        return {"version": self.version, "release": self.version.partition(".")[0], "repoid": "a" * 8}

    def _permissions(self, _names, _given, _user, rights):
        return {path: dict.fromkeys(sorted(held), 1) for path, held in rights.items()}

    def _resources(self, _names, given, _user, rights):
        wanted = given.get("type")
        found = [self._node_resource(name, machine) for name, machine in self.machines.items()] if wanted in (None, "node") else []
        if wanted in (None, "vm"):
            found += [self._guest_resource(guest) for guest in self.guests.values() if _may(rights, f"/vms/{guest.vmid}", "VM.Audit")]
        return found

    def _node_resource(self, name, machine):
        known = {"id": f"node/{name}", "node": name, "type": "node", "status": "online" if machine.online else "offline", "level": ""}
        if not machine.online:
            return known
        used = sum(guest.used for guest in self.guests.values() if guest.node == name and guest.status == "running")
        return known | {"maxcpu": machine.cpus, "maxmem": machine.memory * GIB, "mem": int((used + 2) * GIB), "cpu": 0.1, "uptime": 1000}

    def _guest_resource(self, guest):
        online = self.machines[guest.node].online
        known = {
            "id": f"{guest.kind}/{guest.vmid}",
            "vmid": guest.vmid,
            "node": guest.node,
            "type": guest.kind,
            "status": guest.status if online else "unknown",
            "template": int(guest.template),
            "maxmem": guest.memory * GIB,
            "mem": int(guest.used * GIB) if guest.status == "running" else 0,
            "maxcpu": guest.cores,
            "cpu": guest.cpu,
            "maxdisk": 10 * GIB,
        }
        more = {"name": guest.name, "tags": guest.tags, "pool": guest.pool, "lock": guest.lock, "hastate": guest.ha}
        return known | {name: value for name, value in more.items() if value}

    def _storages(self, names, _given, _user, rights):
        usual = {"type": "dir", "content": "images,rootdir", "shared": 0, "total": 1000 * GIB, "used": 400 * GIB, "avail": 600 * GIB}
        machine = self.machines[names["node"]]
        return [
            usual | {"storage": name, "active": 1, "enabled": 1} | given
            for name, given in machine.storages.items()
            if _may(rights, f"/storage/{name}", "Datastore.Audit")
        ]

    def _status(self, names, *_):
        machine = self.machines[names["node"]]
        memory = {
            "total": machine.memory * GIB,
            "used": 2 * GIB,
            "free": (machine.memory - 2) * GIB,
            "available": (machine.memory - 2) * GIB,
        }
        return {
            "cpu": 0.1,
            "cpuinfo": {"cores": machine.cpus, "cpus": machine.cpus, "model": machine.cpu_model, "sockets": 1, "flags": machine.flags},
            "boot-info": {"mode": "efi"},
            "current-kernel": {"machine": "x86_64", "release": "6.14", "sysname": "Linux", "version": "#1"},
            "loadavg": ["0.1", "0.1", "0.1"],
            "memory": memory,
            "pveversion": "pve-manager/9.1",
            "rootfs": {"avail": GIB, "free": GIB, "total": 2 * GIB, "used": GIB},
        }

    def _guest(self, names, kind):
        guest = self.guests.get(int(names["vmid"]))
        if guest is None or guest.node != names["node"] or guest.kind != kind:
            folder = "qemu-server" if kind == "qemu" else "lxc"
            raise Refused(500, f"Configuration file 'nodes/{names['node']}/{folder}/{names['vmid']}.conf' does not exist")
        return guest

    def _qemu_config(self, names, *_):
        guest = self._guest(names, "qemu")
        return {"memory": str(guest.memory * 1024), "cores": guest.cores, "digest": "0" * 40} | guest.config

    def _lxc_config(self, names, *_):
        guest = self._guest(names, "lxc")
        return {"memory": guest.memory * 1024, "cores": guest.cores, "digest": "0" * 40} | guest.config

    def _qemu_rrd(self, names, *_):
        return self._rrd(self._guest(names, "qemu"))

    def _lxc_rrd(self, names, *_):
        return self._rrd(self._guest(names, "lxc"))

    def _rrd(self, guest):
        now = int(time.time()) // 60 * 60
        point = {
            "cpu": guest.cpu,
            "maxcpu": guest.cores,
            "mem": guest.used * GIB,
            "maxmem": guest.memory * GIB,
            "netin": 100.0,
            "netout": 100.0,
        }
        point |= {
            "diskread": 1000.0,
            "diskwrite": 1000.0,
            "pressurecpusome": guest.pressure,
            "pressurememorysome": 0.0,
            "pressureiosome": 0.0,
        }
        # The last minute is not complete yet: it has a time and nothing else, as in the real one.
        return [point | {"time": now - 60 * minute} for minute in range(60, 0, -1)] + [{"time": now}]

    def _cluster_options(self, _names, _given, _user, rights):
        return self.options if _may(rights, "/", "Sys.Audit") else {}

    def _ha_resources(self, *_):
        return [
            {"sid": guest.sid, "type": guest.sid[:2], "state": guest.ha, "digest": "0"}
            | ({"group": guest.config["ha-group"]} if "ha-group" in guest.config else {})
            for guest in self.guests.values()
            if guest.ha
        ]

    def _list_ha_groups(self, *_):
        if self.version.startswith("9"):
            raise Refused(500, "cannot index groups: ha groups have been migrated to rules")
        return self.ha_groups

    def _ha_rules(self, *_):
        if self.version.startswith("8"):
            raise Refused(501, "Method 'GET /cluster/ha/rules' not implemented")
        return self.rules

    def _manager_status(self, *_):
        states = {name: "maintenance" if m.maintenance else "online" if m.online else "unknown" for name, m in self.machines.items()}
        return {
            "manager_status": {"master_node": next(iter(self.machines)), "node_status": states},
            "lrm_status": {},
            "quorum": {"quorate": "1"},
        }

    def _ha_current(self, *_):
        return [{"id": "quorum", "type": "quorum", "node": next(iter(self.machines)), "status": "OK", "quorate": 1}] + [
            {"id": f"service:{g.sid}", "type": "service", "sid": g.sid, "node": g.node, "status": f"{g.sid} ({g.node}, {s})", "state": s}
            for g in self.guests.values()
            if g.ha
            for s in ["migrate" if g.vmid in self._ha_moving else "started" if g.status == "running" else "stopped"]
        ]

    def _task_status(self, names, *_):
        task = self.tasks.get(urllib.parse.unquote(names["upid"]))
        if task is None:
            raise Refused(400, "Parameter verification failed.", {"upid": "unable to parse worker upid"})
        return task

    def _node_tasks(self, names, given, *_):
        """A list tells how a task has ended as its status; one that goes on has neither that nor an end."""
        found = [task for task in self.tasks.values() if task["node"] == names["node"] and given.get("vmid", task["id"]) == task["id"]]
        return [
            {name: value for name, value in task.items() if name not in ("status", "exitstatus")}
            | ({"status": task["exitstatus"], "endtime": task["endtime"]} if task["status"] == "stopped" else {})
            for task in found
            if task["status"] == "running" or given.get("source") == "all"
        ]

    def _migrate_qemu(self, names, given, user, _rights):
        guest = self._guest(names, "qemu")
        online = given.get("online") == "1"
        if guest.status == "running" and not online:
            raise Refused(500, "can't migrate running VM without --online")
        return self._migrate(guest, given["target"], user, "qmigrate", _qemu_failure(guest, given, self.machines[given["target"]]))

    def _migrate_lxc(self, names, given, user, _rights):
        guest = self._guest(names, "lxc")
        if guest.status == "running" and given.get("restart") != "1":
            raise Refused(500, "lxc live migration is currently not implemented")
        return self._migrate(guest, given["target"], user, "vzmigrate", guest.fails)

    def _migrate(self, guest, target, user, kind, failure):
        if target == guest.node:
            raise Refused(400, "Parameter verification failed.", {"target": "target is local node."})
        if target not in self.machines or not self.machines[target].online:
            raise Refused(500, f"no such cluster node '{target}'")
        if guest.ha:
            self._ha_move(guest, target)
            return self._task(guest.node, f"ha{'migrate' if guest.kind == 'qemu' else 'vzmigrate'}", guest.vmid, user, 0.0, lambda: "OK")
        if guest.lock:
            raise Refused(500, f"VM is locked ({guest.lock})")
        guest.lock = "migrate"
        self.started.append((guest.vmid, target))

        def end() -> str:
            guest.lock = ""
            if failure:
                return f"migration problems: {failure}"
            guest.node = target
            return "OK"

        return self._task(guest.node, kind, guest.vmid, user, self.task_seconds, end)

    def _move_disk(self, names, given, user, rights):
        return self._move_volume(self._guest(names, "qemu"), given["disk"], given, user, rights)

    def _move_lxc_volume(self, names, given, user, rights):
        guest = self._guest(names, "lxc")
        if guest.status == "running":
            raise Refused(500, "cannot move volumes of a running container")
        return self._move_volume(guest, given["volume"], given, user, rights)

    def _move_volume(self, guest, disk, given, user, rights):
        """What is known beside the published call: the storage must take such disks and be another, snapshots keep a disk where it is."""
        if guest.lock:
            raise Refused(500, f"VM is locked ({guest.lock})")
        value = guest.config.get(disk)
        if value is None or "media=cdrom" in value:
            raise Refused(500, f"disk '{disk}' does not exist" if value is None else "you can't move a cdrom")
        source, _colon, rest = value.partition(":")
        target = given.get("storage", "")
        if not _may(rights, f"/storage/{target}", "Datastore.AllocateSpace"):
            raise Refused(403, f"Permission check failed (/storage/{target}, Datastore.AllocateSpace)")
        storage = self.machines[guest.node].storages.get(target)
        if storage is None:
            raise Refused(500, f"storage '{target}' is not available on node '{guest.node}'")
        wanted = "images" if guest.kind == "qemu" else "rootdir"
        if wanted not in storage.get("content", "images,rootdir").split(","):
            raise Refused(500, f"storage '{target}' does not support content-type '{wanted}'")
        if target == source:
            raise Refused(500, "you can't move to the same storage with same format")
        if guest.config.get("parent") and given.get("delete") == "1":
            raise Refused(500, "you can't move a disk with snapshots and delete the source")
        guest.lock = "disk"
        self.started.append((guest.vmid, target))

        def end() -> str:
            guest.lock = ""
            if guest.fails:
                return f"storage migration failed: {guest.fails}"
            guest.config[disk] = f"{target}:{rest}"
            if given.get("delete") != "1":
                guest.config["unused0"] = value.partition(",")[0]
            self._shift(guest.node, source, target, rest)
            return "OK"

        return self._task(guest.node, "qmmove" if guest.kind == "qemu" else "move_volume", guest.vmid, user, self.task_seconds, end)

    def _shift(self, node, source, target, volume):
        """Book the size of a disk from one storage to another; a shared one is booked on all nodes."""
        size = int(volume.partition("size=")[2].partition("G")[0] or 0) * GIB
        for name, machine in self.machines.items():
            for storage, sign in ((source, -1), (target, 1)):
                booked = machine.storages.get(storage, {})
                if "avail" in booked and (name == node or booked.get("shared")):
                    machine.storages[storage] = booked | {"avail": booked["avail"] - sign * size, "used": booked["used"] + sign * size}

    def _ha_migrate(self, names, given, *_):
        guest = next((guest for guest in self.guests.values() if guest.sid == names["sid"] and guest.ha), None)
        if guest is None:
            raise Refused(500, f"cannot migrate service '{names['sid']}' - not managed by HA")
        if given["node"] not in self.machines:
            raise Refused(500, f"cannot migrate service to unknown node '{given['node']}'")
        self._ha_move(guest, given["node"])
        return {"sid": guest.sid, "requested-node": given["node"]}

    def _node_maintenance(self, what, node):
        """What `ha-manager crm-command node-maintenance` does, for which the API has no path: guests under HA leave, and return."""
        self.machines[node].maintenance = what == "enable"
        self.maintained.append((what, node))
        if what == "enable":
            others = [name for name, machine in self.machines.items() if machine.online and not machine.maintenance]
            for guest in [guest for guest in self.guests.values() if guest.ha and guest.node == node and others]:
                self._left[guest.vmid] = node
                self._ha_move(guest, min(others, key=lambda name: sum(one.node == name for one in self.guests.values())))
        for guest in [guest for guest in self.guests.values() if what == "disable" and self._left.get(guest.vmid) == node]:
            self._ha_move(guest, self._left.pop(guest.vmid))

    def _ha_move(self, guest, target):
        """HA takes an order; some time later it migrates the guest by a task of its own, which may fail."""
        self.started.append((guest.vmid, target))
        self._ha_moving.add(guest.vmid)
        source = guest.node

        def end() -> str:
            self._ha_moving.discard(guest.vmid)
            if guest.fails:
                return f"migration problems: {guest.fails}"
            guest.node = target
            return "OK"

        def begin() -> None:
            self._task(source, "qmigrate" if guest.kind == "qemu" else "vzmigrate", guest.vmid, "root@pam", self.task_seconds, end)

        self._pending.append((time.monotonic() + self.ha_seconds, begin))


_NAMES = {
    ("POST", "/access/ticket"): "_ticket",
    ("GET", "/access/permissions"): "_permissions",
    ("GET", "/version"): "_version",
    ("GET", "/cluster/resources"): "_resources",
    ("GET", "/cluster/options"): "_cluster_options",
    ("GET", "/cluster/ha/resources"): "_ha_resources",
    ("GET", "/cluster/ha/groups"): "_list_ha_groups",
    ("GET", "/cluster/ha/rules"): "_ha_rules",
    ("GET", "/cluster/ha/status/manager_status"): "_manager_status",
    ("GET", "/cluster/ha/status/current"): "_ha_current",
    ("POST", "/cluster/ha/resources/{sid}/migrate"): "_ha_migrate",
    ("GET", "/nodes/{node}/status"): "_status",
    ("GET", "/nodes/{node}/storage"): "_storages",
    ("GET", "/nodes/{node}/tasks"): "_node_tasks",
    ("GET", "/nodes/{node}/tasks/{upid}/status"): "_task_status",
    ("GET", "/nodes/{node}/qemu/{vmid}/config"): "_qemu_config",
    ("GET", "/nodes/{node}/lxc/{vmid}/config"): "_lxc_config",
    ("GET", "/nodes/{node}/qemu/{vmid}/rrddata"): "_qemu_rrd",
    ("GET", "/nodes/{node}/lxc/{vmid}/rrddata"): "_lxc_rrd",
    ("POST", "/nodes/{node}/qemu/{vmid}/migrate"): "_migrate_qemu",
    ("POST", "/nodes/{node}/lxc/{vmid}/migrate"): "_migrate_lxc",
    ("POST", "/nodes/{node}/qemu/{vmid}/move_disk"): "_move_disk",
    ("POST", "/nodes/{node}/lxc/{vmid}/move_volume"): "_move_lxc_volume",
}


def _may(rights: dict[str, set[str]], where: str, privilege: str) -> bool:
    """Return whether rights by path let somebody use a privilege; the longest path above counts, as in the real one."""
    above = [path for path in rights if where == path or where.startswith(path.rstrip("/") + "/")]
    return bool(above) and privilege in rights[max(above, key=len)]


def _qemu_failure(guest: Guest, given: dict, target: Machine) -> str:
    """Return how the migration of a machine ends, empty if well."""
    if any(name.startswith(("hostpci", "usb")) for name in guest.config):
        return "cannot migrate VM which uses local devices"
    for name, value in guest.config.items():
        storage = value.partition(":")[0] if isinstance(value, str) and ":" in value else ""
        here = target.storages.get(storage)
        if "media=cdrom" in str(value) and storage and not (here or {}).get("shared"):
            return f"can't migrate local cdrom '{value.partition(',')[0]}'"
        if (
            name.startswith(("scsi", "virtio", "sata", "ide"))
            and here is not None
            and not here.get("shared")
            and given.get("with-local-disks") != "1"
        ):
            return "can't live migrate attached local disks without with-local-disks option"
        if name.startswith(("scsi", "virtio", "sata")) and storage and here is None and not given.get("targetstorage"):
            return f"storage '{storage}' is not available on node"
    return guest.fails


def small_cluster(**options: object) -> Cluster:
    """Return three nodes, of which the first carries nearly all."""
    machines = {f"pve{number}": Machine() for number in (1, 2, 3)}
    guests = [Guest(100 + number, "pve1", f"web{number}", memory=8, cores=4, cpu=0.5) for number in range(6)]
    guests += [Guest(200, "pve2", "dns", kind="lxc", memory=1, cores=1, config={"rootfs": "ceph:vm-200-disk-0,size=8G"})]
    return Cluster(machines, guests, **options)


@contextlib.contextmanager
def serving(cluster: Cluster):
    """Yield the URL of a server on this machine that answers for a cluster, and the path of the authority it is certified by."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self._serve("GET")

        def do_POST(self):
            self._serve("POST")

        def _serve(self, method):
            parts = urllib.parse.urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            given = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True) + urllib.parse.parse_qsl(body, keep_blank_values=True))
            path = urllib.parse.unquote(parts.path.removeprefix("/api2/json"))
            try:
                status, reason, said = 200, "OK", {"data": cluster.answer(method, path, given, self.headers)}
            except Refused as refused:
                status, reason, said = (
                    refused.status,
                    refused.reason,
                    {"data": None} | ({"errors": refused.errors} if refused.errors else {}),
                )
            content = json.dumps(said).encode()
            with contextlib.suppress(OSError):
                self.send_response(status, reason)
                self.send_header("Content-Type", "application/json;charset=UTF-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_arguments):
            """Keep quiet."""

    with tempfile.TemporaryDirectory() as folder:
        certificate = pathlib.Path(folder) / "pve.pem"
        certificate.write_bytes(_certificate())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.server_port}", str(certificate)
        finally:
            server.shutdown()
            server.server_close()


def _certificate() -> bytes:
    """Return a key and its certificate for this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in of Proxmox VE")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(serialization.Encoding.PEM)
