# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door of the stand-in: published rules first, then what is behind the calls. Moves are in moves.py."""

from __future__ import annotations

import time
import urllib.parse

from .api import Refused, check_answer, find_call, permit, verify
from .model import AUDITOR, GIB, MOVER, Guest, Machine, may
from .moves import Moves


class Cluster(Moves):
    """What the calls are answered from, and what they change."""

    def __init__(self, machines: dict[str, Machine], guests: list[Guest], **options: object) -> None:
        super().__init__()
        self.machines, self.guests = machines, {guest.vmid: guest for guest in guests}
        self.rules: list[dict] = []
        self.ha_groups: list[dict] = []
        self.options: dict = {}
        self.mappings: dict[str, list[dict]] = {"pci": [], "usb": []}
        self.quorate = True
        self.version = "9.1"
        self.tokens = {"auditor@pve!bareon": ("s3cret", {"/": AUDITOR}), "mover@pve!bareon": ("m0ve", {"/": MOVER})}
        self.passwords = {"auditor@pve": ("word", {"/": AUDITOR})}
        self.calls: list[tuple[str, str]] = []
        self._tickets: dict[str, str] = {}
        vars(self).update(options)

    # The door: published rules first, then what is behind it.

    def answer(self, method: str, path: str, given: dict[str, str], headers: dict) -> object:
        """Return the data of a call, or raise Refused."""
        with self.clock.lock:
            self.clock.advance()
            if path == "/command/node-maintenance":
                return self._node_maintenance(given["what"], given["node"])
            call, names = find_call(method, path)
            self.calls.append((method, call["path"]))
            user, rights = self._user(headers, call)
            verify(call, {**names, **given})
            permit(call, names, lambda where, privilege: may(rights, where, privilege))
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
            found += [self._guest_resource(guest) for guest in self.guests.values() if may(rights, f"/vms/{guest.vmid}", "VM.Audit")]
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
            if may(rights, f"/storage/{name}", "Datastore.Audit")
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
        return self.options if may(rights, "/", "Sys.Audit") else {}

    def _cluster_status(self, *_):
        nodes = [{"id": f"node/{name}", "name": name, "type": "node", "online": int(one.online)} for name, one in self.machines.items()]
        return [{"id": "cluster", "name": "standin", "type": "cluster", "quorate": int(self.quorate), "nodes": len(nodes)}, *nodes]

    def _replication(self, _names, _given, _user, rights):
        jobs = ((guest, number, target) for guest in self.guests.values() for number, target in enumerate(guest.replicas))
        return [
            {"id": f"{guest.vmid}-{number}", "type": "local", "guest": guest.vmid, "jobnum": number, "source": guest.node, "target": target}
            for guest, number, target in jobs
            if may(rights, f"/vms/{guest.vmid}", "VM.Audit")
        ]

    def _pci(self, *_):
        return self.mappings["pci"]

    def _usb(self, *_):
        return self.mappings["usb"]

    def _machine_types(self, names, *_):
        versions = self.machines[names["node"]].machines
        return [{"id": f"pc-{kind}-{one}", "type": kind, "version": one} for kind in ("i440fx", "q35") for one in versions]

    def _ha_resources(self, *_):
        return [
            {"sid": guest.sid, "type": guest.sid[:2], "state": guest.ha, "digest": "0"}
            | ({} if guest.rebalanced else {"auto-rebalance": 0})
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
            "quorum": {"quorate": str(int(self.quorate))},
        }

    def _ha_current(self, *_):
        return [{"id": "quorum", "type": "quorum", "node": next(iter(self.machines)), "status": "OK", "quorate": 1}] + [
            {"id": f"service:{g.sid}", "type": "service", "sid": g.sid, "node": g.node, "status": f"{g.sid} ({g.node}, {s})", "state": s}
            for g in self.guests.values()
            if g.ha
            for s in ["migrate" if g.vmid in self._ha_moving else "started" if g.status == "running" else "stopped"]
        ]

    def _task_status(self, names, *_):
        task = self.clock.tasks.get(urllib.parse.unquote(names["upid"]))
        if task is None:
            raise Refused(400, "Parameter verification failed.", {"upid": "unable to parse worker upid"})
        return task

    def _node_tasks(self, names, given, *_):
        """A list tells how a task has ended as its status; one that goes on has neither that nor an end."""
        here = [task for task in self.clock.tasks.values() if task["node"] == names["node"]]
        found = [task for task in here if given.get("vmid", task["id"]) == task["id"]]
        return [
            {name: value for name, value in task.items() if name not in ("status", "exitstatus")}
            | ({"status": task["exitstatus"], "endtime": task["endtime"]} if task["status"] == "stopped" else {})
            for task in found
            if task["status"] == "running" or given.get("source") == "all"
        ]


_NAMES = {
    ("POST", "/access/ticket"): "_ticket",
    ("GET", "/access/permissions"): "_permissions",
    ("GET", "/version"): "_version",
    ("GET", "/cluster/resources"): "_resources",
    ("GET", "/cluster/options"): "_cluster_options",
    ("GET", "/cluster/status"): "_cluster_status",
    ("GET", "/cluster/replication"): "_replication",
    ("GET", "/cluster/mapping/pci"): "_pci",
    ("GET", "/cluster/mapping/usb"): "_usb",
    ("GET", "/nodes/{node}/capabilities/qemu/machines"): "_machine_types",
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


def small_cluster(**options: object) -> Cluster:
    """Return three nodes, of which the first carries nearly all."""
    machines = {f"pve{number}": Machine() for number in (1, 2, 3)}
    guests = [Guest(100 + number, "pve1", f"web{number}", memory=8, cores=4, cpu=0.5) for number in range(6)]
    guests += [Guest(200, "pve2", "dns", kind="lxc", memory=1, cores=1, config={"rootfs": "ceph:vm-200-disk-0,size=8G"})]
    return Cluster(machines, guests, **options)
