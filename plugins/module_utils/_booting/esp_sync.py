# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The EFI system partitions of a system stay alike: a script in it copies the mounted one to the others whenever packages have changed.

Every family of distributions calls it from a hook that comes after all others: dpkg when it ends, kernel-install, update-initramfs, and
where there is rpm, which has no hook for administrators, a path unit of systemd that watches rpm's database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .._storage.gpt import ESP
from .step import BootStep, write_step
from .system import System, has

SCRIPT = "/etc/bareon/esp-sync"
SETTINGS = "/etc/bareon/esps"

TEXT = r"""#!/bin/sh
# Copies the mounted EFI system partition to the others of the layout. The module disk_boot writes this file and /etc/bareon/esps.
#
# Hooks of package tools call it without arguments: it compares only what has changed since the last copy. `--all` compares everything,
# `--when-quiet FOLDER...` waits first until nothing in these folders has changed for 20 seconds.
set -u
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
settings=/etc/bareon/esps
protected=/etc/bareon/protected
state=/var/lib/bareon.allocator/esps
work=/run/bareon-esp-sync
at=$work/mounted
esp_type=@ESP@

say() {
    level=$1
    shift
    echo "esp-sync: $*" >&2
    logger -t bareon-esp-sync -p "user.$level" -- "$*" 2>/dev/null || :
}

# Everything that is copied, in the order in which it is needed: a menu comes after the kernels that it names.
# A random seed belongs to one partition, and an update of the firmware is to be found once.
# find fails where it cannot read everything: what is missing in its list would be removed elsewhere.
files() {
    (
        cd "$place" && find . -xdev -type f ! -ipath ./loader/random-seed ! -ipath './EFI/UpdateCapsule/*' ! -name '*.bareon-new' \
            -printf "$1" >"$work/found"
    ) || { say err "cannot read all of $place: nothing is copied"; return 1; }
    sort "$work/found"
}
listed() {
    files '%p\n' >"$work/all" || return 1
    { grep -v '^\./loader/' "$work/all"; grep '^\./loader/' "$work/all"; } >"$work/files"
    grep -qi '^\./EFI/.*\.efi$' "$work/files" || { say err "$place has no boot loader: it is not copied to other partitions"; return 1; }
}
described() { files '%p %s %T@\n'; }

identity() { blkid -p -o export "$1" 2>/dev/null; }
has_line() { printf '%s\n' "$1" | grep -qixF -- "$2"; }
is_esp() {
    found=$(identity "$1") || return 1
    has_line "$found" TYPE=vfat && has_line "$found" "PART_ENTRY_TYPE=$esp_type" && has_line "$found" "PART_ENTRY_UUID=$2"
}

# The partition with a PARTUUID. Members of a multipath device have it, too, but are held by that device.
find_device() {
    set -- "$1" $(blkid -c /dev/null -t "PARTUUID=$1" -o device)
    wanted=$1 device=
    shift
    for found in "$@"; do
        [ -z "$(ls "/sys/class/block/$(basename "$(readlink -f "$found")")/holders" 2>/dev/null)" ] || continue
        [ -z "$device" ] || { say err "$device and $found both have the PARTUUID $wanted: nothing is written to either"; return 1; }
        device=$found
    done
    if [ -z "$device" ]; then
        say warning "no partition has the PARTUUID $wanted: its disk is missing, or was replaced (run disk_boot again)"
        return 1
    fi
    is_esp "$device" "$wanted" && return
    say err "$device is not an EFI system partition with a FAT any more: nothing is written to it"
    return 1
}

# The forms of serial numbers and WWNs in which all tools' are alike.
comparable() {
    tr '[:upper:]' '[:lower:]' | sed -E 's/^[[:space:]]+|[[:space:]]+$//g; p; s/^(wwn-|nvme-)?(naa\.|eui\.|nguid\.|uuid\.|0x)//; s/-//g' \
        | grep -a .
}
unquoted() { sed -E "p; s/^[^!-~]*[\"'](.*)[\"'][^!-~]*\$/\\1/"; }
# Doubt protects: an entry counts with and without a comment, a tag, quotes and a folder of links. What is no ASCII ends a line, or may be a
# space, or a letter with an accent, which has several forms that may begin with an ASCII letter: anything counts for it, but it never names
# what is all ASCII.
patterns() {
    sed -E 's/\xe2\x80[\xa8\xa9]|\xc2\x85/\n/g; p; s/[^ -~\t]+/\n/g' "$1" | sed -E '/^[[:space:]]*#/d; p; s/[^!-~]#.*$//' | unquoted \
        | sed -E 'p; s/^[^!-~]*[A-Za-z]+=//' | unquoted \
        | sed -E 'p; s,^[^!-~]*(/*[Dd][Ee][Vv]/+)?[Dd][Ii][Ss][Kk]/+[Bb][Yy]-[A-Za-z]+/+,,; s/\\x[0-7][0-9A-Fa-f]/\xc2\xa0/g' \
        | comparable | sort -u \
        | sed -E 's/[][(){}.*+?^$|\\]/\\&/g; s/[a-z]?[^ -~\t]+/.*/g; s/^(\.\*| )+$/.*([^ -~]|\\\\x[0-9a-f]{2}).*/'
}
# All that names the disks below a partition: of each of their devices its nodes, links, numbers and labels.
names() {
    for below in $(lsblk -slno KNAME "$1" 2>/dev/null); do lsblk -lno KNAME "/dev/$below"; done | sort -u >"$work/nodes"
    [ -s "$work/nodes" ] || return 1
    cat "$work/nodes"
    sed 's,^,/dev/,' "$work/nodes" | tee "$work/paths"
    set -- $(cat "$work/paths")
    for column in SERIAL WWN LABEL UUID PARTLABEL PARTUUID; do lsblk -dno "$column" "$@" || return 1; done
    # lsblk knows what udev has found, which is not running everywhere.
    for node; do blkid -p -o value -s LABEL -s UUID -s PART_ENTRY_NAME -s PART_ENTRY_UUID "$node"; done
    for link in /dev/disk/by-*/* /dev/*/*; do
        ! grep -qxF -- "$(readlink -f "$link")" "$work/paths" || printf '%s\n' "$link" "${link##*/}" "${link#/dev/}"
    done
}
# A list that cannot be read is not an empty one.
is_protected() {
    [ -e "$protected" ] || [ -L "$protected" ] || return 1
    [ -f "$protected" ] && tr '\r' '\n' <"$protected" >"$work/list" \
        && tr -d '\000-\010\013-\037\177' <"$work/list" | cmp -s - "$work/list" \
        || { why="$protected cannot be read as text"; return 0; }
    patterns "$work/list" >"$work/patterns"
    names "$1" >"$work/names" || { why="lsblk does not say on which disk it is, and $protected may name that"; return 0; }
    why="$protected names its disk"
    comparable <"$work/names" | grep -aqxE -f "$work/patterns"
}

# The old file stays open, so that its clusters are free only when the directory on the medium no longer names them. That is written with
# the file, not with the directory.
write_file() {
    folder=$at/${1%/*}
    mkdir -p "$folder" && cp -- "$place/$1" "$at/$1.bareon-new" && sync "$at/$1.bareon-new" || return 1
    [ ! -f "$at/$1" ] || exec 8<"$at/$1" || return 1
    mv -fT -- "$at/$1.bareon-new" "$at/$1" && sync "$at/$1" && sync "$folder"
    code=$?
    exec 8<&-
    return "$code"
}
remove_file() {
    exec 8<"$at/$1" || return 1
    rm -f -- "$at/$1" && sync "$at/${1%/*}"
    code=$?
    exec 8<&-
    (cd "$at" && rmdir --parents --ignore-fail-on-non-empty -- "${1%/*}") 2>/dev/null
    return "$code"
}
write_files() {
    while IFS= read -r file; do
        cmp -s -- "$place/$file" "$at/$file" && continue
        write_file "$file" || { rm -f "$at/$file.bareon-new"; return 1; }
        written=$((written + 1))
    done <"$work/files"
}
# Only what an earlier run has copied, and the mounted one has no longer: files of others stay.
remove_files() {
    [ -f "$state/$uuid.files" ] || return 0
    grep -vixF -f "$work/files" "$state/$uuid.files" >"$work/all"
    { grep '^\./loader/' "$work/all"; grep -v '^\./loader/' "$work/all"; } >"$work/gone"
    while IFS= read -r file; do
        [ -f "$at/$file" ] || continue
        remove_file "$file" || return 1
        removed=$((removed + 1))
    done <"$work/gone"
}
is_alike() {
    while IFS= read -r file; do
        cmp -s -- "$place/$file" "$at/$file" || { differs=$file; return 1; }
    done <"$work/files"
}
remember() { sync "$2" && mv -fT -- "$2" "$state/$1" && sync "$state"; }

# Compare what is on the medium, not what is in memory: the file system is mounted again. A cut may have left two names for one file.
copy() {
    findmnt --source "$device" >/dev/null || ! command -v fsck.vfat >/dev/null || fsck.vfat -a "$device" >/dev/null
    mount -t vfat -o rw,nosuid,nodev,noexec,umask=0077 -- "$device" "$at" || { say err "cannot mount $device"; return 1; }
    # The second are clusters that a cut left without a name, which fsck gives one.
    find "$at" -xdev -type f -name '*.bareon-new' -exec rm -f -- {} +
    rm -f -- "$at"/FSCK[0-9][0-9][0-9][0-9].REC
    cat "$state/$uuid.files" "$work/files" 2>/dev/null | sort -u >"$state/new" && remember "$uuid.files" "$state/new" || return 1
    written=0 removed=0
    write_files || { remove_files && write_files; } || { say err "cannot write $file to $device: is it full?"; return 1; }
    remove_files || { say err "cannot remove $file from $device"; return 1; }
    sync -f "$at"
    if ! umount "$at" || ! mount -t vfat -o ro,nosuid,nodev,noexec,umask=0077 -- "$device" "$at"; then
        say err "cannot mount $device again"
        return 1
    fi
    is_alike || { say err "$differs on $device differs from the one in $place after it was copied"; return 1; }
    umount "$at" || return 1
    cp "$work/files" "$state/new" && remember "$uuid.files" "$state/new" || return 1
    [ $((written + removed)) = 0 ] || say info "copied $place to $device ($uuid): $written files written, $removed removed"
}

once() {
    described >"$work/before" && listed || return 1
    failed=0
    for uuid in $uuids; do
        [ "$uuid" != "$mounted" ] || continue
        [ "$all" = 0 ] && cmp -s "$work/before" "$state/$uuid.done" && continue
        rm -f "$state/$uuid.done"
        find_device "$uuid" || { failed=1; continue; }
        if is_protected "$device"; then
            say warning "$device: $why, so nothing is written to it"
            continue
        fi
        if copy; then
            cp "$work/before" "$state/new" && remember "$uuid.done" "$state/new"
        else
            failed=1
            umount "$at" 2>/dev/null
        fi
    done
    return "$failed"
}

[ -r "$settings" ] || exit 0
place=$(sed -n 's/^place //p' "$settings")
uuids=$(sed -n 's/^partition //p' "$settings")
if [ "${1-}" != --inside ]; then
    if [ "${1-}" = --when-quiet ]; then
        shift
        while [ -n "$(find "$@" -newermt '20 seconds ago' 2>/dev/null | head -n 1)" ]; do sleep 5; done
        set --
    fi
    # An automounted one is mounted now; in a mount namespace of its own it would not be.
    ls "$place/." >/dev/null 2>&1
    unshare --mount --propagation private true || { say err "cannot make a mount namespace: nothing is copied"; exit 1; }
    exec unshare --mount --propagation private -- /bin/sh "$0" --inside "$@"
fi
all=0
[ "${2-}" != --all ] || all=1
mkdir -p "$work" "$at" "$state" || exit 1
exec 9>"$work/lock"
flock 9
source=$(findmnt --noheadings --raw --types vfat --output SOURCE --mountpoint "$place" | tail -n 1)
[ -n "$source" ] || { say warning "no EFI system partition is mounted at $place: nothing is copied"; exit 0; }
mounted=$(identity "$source" | sed -n 's/^PART_ENTRY_UUID=//p')
if ! printf '%s\n' "$uuids" | grep -qxF -- "$mounted" || ! is_esp "$source" "$mounted"; then
    say err "$source, which is mounted at $place, is not an EFI system partition of the layout: nothing is copied"
    exit 1
fi
for round in 1 2 3 4 5; do
    once || exit 1
    described >"$work/after" || exit 1
    cmp -s "$work/after" "$work/before" && exit 0
    all=0
done
say err "$place changes all the time: the others may differ from it"
exit 1
""".replace("@ESP@", ESP)

_CALL = f"[ ! -x {SCRIPT} ] || {SCRIPT} || :"
"""What hooks run: a partition that cannot be written is in the journal, and stops no installation of packages."""

_HOOK = f"""#!/bin/sh
# Copies the EFI system partition to the others when all other hooks have run.
{_CALL}"""

_DPKG = f"""# Copies the EFI system partition to the others when packages have changed.
post-invoke="{_CALL}\""""

_RPM_FOLDERS = "/usr/lib/sysimage/rpm /var/lib/rpm"
_SERVICE = f"""[Unit]
Description=Copy the mounted EFI system partition to the others

[Service]
Type=oneshot
ExecStart=/bin/sh {SCRIPT} --when-quiet {_RPM_FOLDERS}"""
_PATH = """[Unit]
Description=Watch for changed packages, to copy the EFI system partition to the others

[Path]
{}

[Install]
WantedBy=paths.target""".format("\n".join(f"PathChanged={folder}" for folder in _RPM_FOLDERS.split()))

_UNIT = "/etc/systemd/system/bareon-esp-sync"
_WANTS = "/etc/systemd/system/paths.target.wants/bareon-esp-sync.path"

HOOKS: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]] = {
    "dpkg": ("usr/bin/dpkg", {"/etc/dpkg/dpkg.cfg.d/bareon-esp-sync": (_DPKG, "644")}),
    "kernel-install": ("usr/bin/kernel-install", {"/etc/kernel/install.d/zz-bareon-esp-sync.install": (_HOOK, "755")}),
    "update-initramfs": ("usr/sbin/update-initramfs", {"/etc/initramfs/post-update.d/zz-bareon-esp-sync": (_HOOK, "755")}),
    "rpm": ("usr/bin/rpm", {f"{_UNIT}.service": (_SERVICE, "644"), f"{_UNIT}.path": (_PATH, "644")}),
}
"""By what runs a hook: the file of a system that has it, and the files of the hook with their texts and modes."""


def plan(place: str, esps: Mapping[str, str], system: System, wanted: bool) -> Iterator[BootStep]:
    """Yield the steps that keep EFI system partitions alike, or end it; `esps` are PARTUUIDs by device, and mounted is one at `place`."""
    if wanted and len(esps) > 1:
        yield from _steps(place, esps, system)
    elif has(system, SETTINGS.lstrip("/")):
        files = [file for _program, made in HOOKS.values() for file in made]
        yield BootStep("stop copying the EFI system partition to others", ("rm", "-f", *files, _WANTS, SCRIPT, SETTINGS))


def _steps(place: str, esps: Mapping[str, str], system: System) -> Iterator[BootStep]:
    partitions = "\n".join(f"partition {uuid}" for uuid in esps.values())
    says = f"# What {SCRIPT} keeps alike: where one EFI system partition is mounted, and the PARTUUIDs of all."
    yield write_step("name the EFI system partitions that are kept alike", SETTINGS, f"{says}\nplace {place}\n{partitions}")
    yield write_step("write what copies one EFI system partition to the others", SCRIPT, TEXT.rstrip("\n"), "755")
    for name in hooks_of(system):
        for file, (text, mode) in HOOKS[name][1].items():
            yield write_step(f"have {name} copy the EFI system partition ({file})", file, text, mode)
    if "rpm" in hooks_of(system):
        command = ("sh", "-c", 'mkdir -p "${2%/*}"; ln -sf "$1" "$2"', "sh", f"{_UNIT}.path", _WANTS)
        yield BootStep("enable the unit that watches the packages of rpm", command)
    first, *_others = esps
    yield BootStep("copy the EFI system partition to the others", (SCRIPT, "--all"), first)


def hooks_of(system: System) -> Sequence[str]:
    """Return the names of the hooks that a system can have."""
    return [name for name, (program, _files) in HOOKS.items() if has(system, program)]
