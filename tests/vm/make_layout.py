# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make planned layouts with the standard tools, one after the other, and say what came of each. For tests only: it wipes disks.

With `made` instead of `schemas` it only looks at layouts that were made by others, and that are all in use.

JSON from stdin, `{"stacked": bool, "schemas": [...]}` with the `schema` of plans, to JSON on stdout: a list of reports, each with
`failed` (the command that failed and its words, or null) and what kernel and tools say of the things that were made, in bytes.

With `stacked` the kernel has md and device-mapper, every layout is made as a whole and taken down again. Without it there are
partitions, file systems, LUKS headers, PVs, and VGs and LVs as metadata only; whoever called removes the disks.

The standard library is all that is needed, for this file is sent to machines as it is.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile

MIB = 1024**2
SECTOR = 512
"""The unit of /sys, whatever the disk's own sectors are."""


class Failed(Exception):
    """A command failed."""


def run(*command, text=None, check=True):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise Failed(f"{' '.join(command)}: rc {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def settle():
    if os.path.exists("/run/udev/control"):
        run("udevadm", "settle")


def of_kernel(device, name):
    with open(f"/sys/class/block/{os.path.basename(os.path.realpath(device))}/{name}", encoding="ascii") as file:
        return file.read().strip()


def in_bytes(device, name="size"):
    return int(of_kernel(device, name)) * SECTOR


class Lvm:
    """LVM that sees nothing but the devices of the layout, and keeps no backups of what the test throws away."""

    def __init__(self, schema, stacked):
        self.names = [volume["name"] for volume in schema["pvs"] if os.path.exists(volume["name"])]
        devices = {name for device in self.names for name in (device, os.path.realpath(device))}
        accepted = "".join(f'"a|^{device}$|",' for device in sorted(devices))
        settings = [f'devices {{ filter=[{accepted}"r|.*|"] hints="none" use_devicesfile=0 allow_mixed_block_sizes=1 }}']
        settings += ["backup { backup=0 archive=0 }"]
        settings += [] if stacked else ["global { activation=0 }"]
        self.config = " ".join(settings)

    def __call__(self, *command):
        return run(command[0], "--config", self.config, *command[1:])

    def report(self, command, fields):
        output = self(command, "--reportformat", "json", "--units", "b", "--nosuffix", "--options", fields)
        return json.loads(output)["report"][0][command.rstrip("s")]


def make_table(disk):
    sector = int(of_kernel(disk["name"], "queue/logical_block_size"))
    # Disks that ask for large or odd steps would have their first partition later than at 1 MiB.
    lines = ["label: gpt", "unit: sectors", f"first-lba: {MIB // sector}"]
    for part in disk["partitions"]:
        start, end = part["begin"] * MIB // sector, part["end"] * MIB // sector
        lines.append(
            f'{part["count"]}: start={start}, size={end - start}, type={part["guid"]}, uuid={part["uuid"]}, name="{part["space_id"]}"'
        )
    options = ("--quiet", "--no-reread", "--no-tell-kernel", "--wipe=always", "--wipe-partitions=always")
    run("sfdisk", *options, disk["name"], text="\n".join(lines) + "\n")
    run("partx", "--update", disk["name"])
    settle()
    for part in disk["partitions"]:
        if not os.path.exists(part["name"]):
            raise Failed(f"{part['name']} did not appear")


def make_array(array):
    options = ["--run", "--homehost=any", f"--name={array['space_id']}", f"--level={array['level']}", f"--metadata={array['metadata']}"]
    if array["level"] != "raid0":
        # A bitmap takes of the room that capacities are counted without; building up the mirrors has no part in sizes.
        options += ["--bitmap=internal", "--assume-clean"]
    run("mdadm", "--create", array["name"], *options, f"--raid-devices={len(array['devices'])}", *array["devices"])
    settle()


def make_container(container, key, aligned, opened):
    quick = ("--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000")
    begin = [] if aligned else [f"--offset={16 * MIB // SECTOR}"]
    run("cryptsetup", "luksFormat", "--batch-mode", "--type=luks2", *quick, *begin, f"--key-file={key}", container["device"])
    if opened:
        run("cryptsetup", "open", f"--key-file={key}", container["device"], container["name"])
        settle()


def make_groups(schema, lvm):
    settings = {volume["name"]: pv_options(schema, volume) for volume in schema["pvs"] if volume["name"] in lvm.names}
    for options in sorted(set(settings.values())):
        lvm("pvcreate", "--yes", "--force", *options, *[name for name, own in settings.items() if own == options])
    for group in made_groups(schema, lvm):
        extents = [f"--physicalextentsize={group['extent_size']}m"] if "extent_size" in group else []
        lvm("vgcreate", *extents, group["name"], *group["pvnames"])
        for volume in schema["lvs"]:
            if volume["vgname"] == group["name"]:
                named = (f"--name={volume['name']}", f"--size={volume['size']}m", group["name"])
                lvm("lvcreate", "--yes", "--wipesignatures=n", "--zero=n", *named)


def pv_options(schema, volume):
    """LVM aligns extents to the stripes of arrays; what else disks ask for (USB bridges: 32 MiB less a sector) it must not follow."""
    size = [f"--metadatasize={volume['metadatasize']}m"] if volume["metadatasize"] else []
    begin = [] if on_array(schema, volume["name"]) else ["--dataalignment=1m"]
    return (*size, *begin, f"--pvmetadatacopies={volume['metadatacopies']}")


def on_array(schema, device):
    below = {f"/dev/mapper/{container['name']}": container["device"] for container in schema["luks"]}
    return below.get(device, device) in {array["name"] for array in schema["mds"]}


def made_groups(schema, lvm):
    return [group for group in schema["vgs"] if set(group["pvnames"]) <= set(lvm.names)]


def make(schema, stacked, key):
    for disk in schema["parteds"]:
        make_table(disk)
    if stacked:
        for array in schema["mds"]:
            make_array(array)
    for container in schema["luks"]:
        if os.path.exists(container["device"]):
            make_container(container, key, on_array(schema, container["device"]), opened=stacked)
    make_groups(schema, Lvm(schema, stacked))
    for filesystem in schema["fss"]:
        if filesystem["fs_type"] == "vfat" and os.path.exists(filesystem["device"]):
            run("mkfs.vfat", "-F", "32", filesystem["device"])


def look(schema, stacked, report):
    report["partitions"] = {part["name"]: partition_of(part) for disk in schema["parteds"] for part in disk["partitions"]}
    report["tables"] = {disk["name"]: run("sfdisk", "--verify", disk["name"]).strip() for disk in schema["parteds"]}
    report["arrays"] = {array["name"]: array_of(array["name"]) for array in schema["mds"] if stacked}
    for container in schema["luks"]:
        if os.path.exists(container["device"]):
            report["containers"][container["device"]] = container_of(container, opened=stacked)
    lvm = Lvm(schema, stacked)
    if made_groups(schema, lvm):
        as_planned = {os.path.realpath(name): name for name in lvm.names}
        report["pvs"] = [
            {**volume, "pv_name": as_planned[os.path.realpath(volume["pv_name"])]}
            for volume in lvm.report("pvs", "pv_name,pe_start,pv_pe_count")
        ]
        report["vgs"] = lvm.report("vgs", "vg_name,vg_extent_size,vg_extent_count,vg_free_count")
        report["lvs"] = lvm.report("lvs", "lv_name,vg_name,lv_size")
    for filesystem in schema["fss"]:
        if filesystem["fs_type"] == "vfat" and os.path.exists(filesystem["device"]):
            report["fats"][filesystem["device"]] = fat_of(filesystem["device"])


def partition_of(part):
    return {"begin": in_bytes(part["name"], "start"), "size": in_bytes(part["name"])}


def array_of(name):
    device = os.path.basename(os.path.realpath(name))
    members = f"/sys/class/block/{device}/md"
    offsets = [int(of_kernel(name, f"md/{member}/offset")) * SECTOR for member in os.listdir(members) if member.startswith("dev-")]
    return {"size": in_bytes(name), "offset": max(offsets), "optimal_io": int(of_kernel(name, "queue/optimal_io_size"))}


def container_of(container, opened):
    header = json.loads(run("cryptsetup", "luksDump", "--dump-json-metadata", container["device"]))
    size = in_bytes(f"/dev/mapper/{container['name']}") if opened else None
    return {"offset": int(header["segments"]["0"]["offset"]), "size": size, "below": in_bytes(container["device"])}


def fat_of(device):
    """Count the clusters as firmware does: from the boot sector. With fewer than 65525 of them it is not FAT32."""
    with open(device, "rb") as file:
        boot_sector = file.read(512)
    sector, cluster, reserved, tables = struct.unpack_from("<HBHB", boot_sector, 11)
    table_16 = struct.unpack_from("<H", boot_sector, 22)[0]
    total, table = struct.unpack_from("<II", boot_sector, 32)
    return {"sector": sector, "old_table": table_16, "clusters": (total - reserved - tables * table) // cluster, "end": total * sector}


def take_down(schema):
    """Undo the layout, or what there is of it: whatever is not there fails, and that is fine."""
    lvm = Lvm(schema, stacked=True)
    if schema["vgs"]:
        run("vgremove", "--config", lvm.config, "--force", "--yes", *[group["name"] for group in schema["vgs"]], check=False)
    for container in schema["luks"]:
        run("cryptsetup", "close", container["name"], check=False)
    if schema["mds"]:
        run("mdadm", "--stop", *[array["name"] for array in schema["mds"]], check=False)
    # Without their signatures nothing is put together again when the next layout has a partition at the same place.
    run("wipefs", "--all", "--quiet", "--force", *[part["name"] for disk in schema["parteds"] for part in disk["partitions"]], check=False)
    for disk in schema["parteds"]:
        run("partx", "--delete", disk["name"], check=False)
    run("wipefs", "--all", "--quiet", "--force", *[disk["name"] for disk in schema["parteds"]], check=False)
    settle()


def report_of(schema, stacked, *steps):
    report = {"failed": None, "partitions": {}, "tables": {}, "arrays": {}, "containers": {}, "pvs": [], "vgs": [], "lvs": [], "fats": {}}
    try:
        for step in steps:
            step()
        look(schema, stacked, report)
    except (Failed, OSError) as error:
        report["failed"] = str(error)
    return report


def report_of_new(schema, stacked, key):
    report = report_of(schema, stacked, lambda: make(schema, stacked, key))
    if stacked:
        take_down(schema)
    return report


def main():
    task = json.load(sys.stdin)
    with tempfile.NamedTemporaryFile() as key:
        key.write(os.urandom(64))
        key.flush()
        made = [report_of_new(schema, task["stacked"], key.name) for schema in task.get("schemas", [])]
    json.dump(made + [report_of(schema, stacked=True) for schema in task.get("made", [])], sys.stdout)


if __name__ == "__main__":
    main()
