# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the moves of guests and disks beside the published calls: what is refused, how they end, and what HA makes of them."""

from __future__ import annotations

from .api import Refused
from .model import GIB, Guest, Machine, may
from .tasks import Clock


class Moves:
    """The calls that move something; how long they take, and what they have begun."""

    machines: dict[str, Machine]
    guests: dict[int, Guest]

    def __init__(self) -> None:
        self.clock = Clock()
        self.task_seconds, self.ha_seconds = 0.3, 0.6
        self.started: list[tuple[int, str]] = []
        """Every migration that was begun: guest and target."""
        self.maintained: list[tuple[str, str]] = []
        """What HA's maintenance mode was told: enable or disable, and a node."""
        self._left: dict[int, str] = {}
        self._ha_moving: set[int] = set()

    def _guest(self, names, kind):
        guest = self.guests.get(int(names["vmid"]))
        if guest is None or guest.node != names["node"] or guest.kind != kind:
            folder = "qemu-server" if kind == "qemu" else "lxc"
            raise Refused(500, f"Configuration file 'nodes/{names['node']}/{folder}/{names['vmid']}.conf' does not exist")
        return guest

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
        if guest.under_ha:
            self._ha_move(guest, target)
            kind = "hamigrate" if guest.kind == "qemu" else "havzmigrate"
            return self.clock.task(guest.node, kind, guest.vmid, user, 0.0, lambda: "OK")
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

        return self.clock.task(guest.node, kind, guest.vmid, user, self.task_seconds, end)

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
        if not may(rights, f"/storage/{target}", "Datastore.AllocateSpace"):
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

        return self.clock.task(guest.node, "qmmove" if guest.kind == "qemu" else "move_volume", guest.vmid, user, self.task_seconds, end)

    def _shift(self, node, source, target, volume):
        """Book the size of a disk from one storage to another; a shared one is booked on all nodes."""
        size = int(volume.partition("size=")[2].partition("G")[0] or 0) * GIB
        for name, machine in self.machines.items():
            for storage, sign in ((source, -1), (target, 1)):
                booked = machine.storages.get(storage, {})
                if "avail" in booked and (name == node or booked.get("shared")):
                    machine.storages[storage] = booked | {"avail": booked["avail"] - sign * size, "used": booked["used"] + sign * size}

    def _ha_migrate(self, names, given, *_):
        guest = next((guest for guest in self.guests.values() if guest.sid == names["sid"] and guest.under_ha), None)
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
            for guest in [guest for guest in self.guests.values() if guest.under_ha and guest.node == node and others]:
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
            self.clock.task(source, "qmigrate" if guest.kind == "qemu" else "vzmigrate", guest.vmid, "root@pam", self.task_seconds, end)

        self.clock.later(self.ha_seconds, begin)


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
