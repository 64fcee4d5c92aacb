# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recovery keys on the controller: created here, written to files that only their owner can read, and then handed to the host.

    result = change_keys(call, containers, Folder(path, "db1"), shows=False)

`call` runs a part of disk_keys on the host. The host asks for recovery keys; they are written and flushed; the host adds them, which leaves
a mark in each header; a last part removes the marks and the keys that may go. If it is interrupted anywhere, the file has the key already:
its name ends with `.new` until the host has confirmed it, and the next run hands the same key to the host.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import typing as t
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...module_utils._data.errors import Mistakes
from ...module_utils._storage.recovery_key import is_recovery_key, new_recovery_key
from ...module_utils._storage.unlock import RECOVERY, why_no_key_file
from .._common.files import create_file, make_folder, sync_folder

Plain = dict[str, t.Any]
Call = Callable[[Plain], Plain]
"""Takes the option `hand_over` of the module, and returns its result."""

COMPLETE, PREPARE, ENROL = STAGES = ("complete", "prepare", "enrol")
"""What of the work a task does: all of it, what comes before keys are handed over to others, and what comes after."""

_SLOTS = range(32)
_FOR_THE_CONTROLLER = ("recovery_needed", "recovery_slots", "added")
_MOST_EARLIER = 10000
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Refused(Exception):
    """Recovery keys cannot be kept or handed over; the text says why."""


def check_folder(folder: Path, option: str) -> None:
    """Create the folder that an option names where it is missing, and see that it takes files; raises Refused."""
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Refused(f"{option}: {folder} cannot be written to: {error.strerror}") from error


def refuse_ledger(folders: Mapping[str, object]) -> None:
    """Raise InputError where `ledger` stands for a folder, by option, as it stands for the place of other states: these are secrets."""
    mistakes = Mistakes()
    for option, given in folders.items():
        if given == "ledger":
            says = (
                "is ledger; all who may claim in a ledger could then open the disks, so secrets never lie there. Give a folder (./ledger "
                "for one of this name), and to keep recovery keys elsewhere, hand them over by disk_layout_escrow_tasks of the role"
            )
            mistakes.add(option, says)
    mistakes.check()


@dataclass(frozen=True)
class Folder:
    """The folder for recovery keys, and the host that they are for; `keeps` is whether it has them after the host has confirmed them."""

    path: Path
    host: str
    keeps: bool = True

    def check(self) -> None:
        """Create the folder where it is missing, and see that it takes files; raises Refused."""
        check_folder(self.path, "recovery_key_directory")

    def new(self, name: str) -> Path:
        """Return the file of a key that is not confirmed yet."""
        return self._file(name, "new")

    def waiting(self, name: str) -> str | None:
        """Return the key that an interrupted run has left in a file, None where there is none; raises Refused for anything else there."""
        file = self.new(name)
        try:
            handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Refused(f"{file} cannot be read: {error.strerror}; it should be a recovery key of an interrupted run") from error
        try:
            found = os.fstat(handle)
            text = os.read(handle, 1024).decode(errors="replace").removesuffix("\n") if stat.S_ISREG(found.st_mode) else ""
        finally:
            os.close(handle)
        if not is_recovery_key(text):
            raise Refused(f"{file} has no recovery key, although its name is that of one that an interrupted run has left; remove it")
        if found.st_uid != os.geteuid():
            raise Refused(f"{file} belongs to another user, who would know the key; remove it, or make it yours if you trust it")
        problem = why_no_key_file(found)
        if problem is not None:
            raise Refused(f"{file} {problem}")
        return text

    def write(self, name: str, key: str) -> None:
        """Write a new key, down to the medium; raises Refused."""
        try:
            create_file(self.new(name), f"{key}\n")
        except OSError as error:
            raise Refused(f"recovery_key_directory: {self.new(name)} cannot be written: {error.strerror}") from error

    def confirm_all(self, slots: Mapping[str, int]) -> dict[str, Path]:
        """Confirm the keys of containers, and return the files that stay; raises Refused."""
        if self.keeps:
            return {name: self.confirm(name, slot) for name, slot in slots.items()}
        try:
            for name in slots:
                self.new(name).unlink(missing_ok=True)
            sync_folder(self.path)
        except OSError as error:
            raise Refused(f"keep_recovery_keys: the files of confirmed keys in {self.path} cannot be deleted: {error.strerror}") from error
        return {}

    def confirm(self, name: str, slot: int) -> Path:
        """Give the file of a key its final name, HOST.CONTAINER.SLOT, and return it; raises Refused.

        Host and container are quoted as in a URL.

        A file of that name, which may be of an earlier container, is kept under another one.
        """
        file = self._file(name, str(slot))
        if not os.path.lexists(self.new(name)):
            # Another run may have renamed it, so the file that is there may be the only copy of the key, and stays where it is.
            raise Refused(f"{self.new(name)} is gone; another run may have renamed it, so run this again")
        try:
            if os.path.lexists(file):
                earlier = (file.with_name(f"{file.name}.old{number}") for number in range(1, _MOST_EARLIER))
                file.rename(next(path for path in earlier if not os.path.lexists(path)))
            self.new(name).rename(file)
            sync_folder(self.path)
        except OSError as error:
            raise Refused(f"{self.new(name)} has the recovery key in slot {slot}, but cannot be renamed: {error.strerror}") from error
        return file

    def _file(self, name: str, last: str) -> Path:
        # A key of one host must never be taken for that of another: only in the host may dots be left as they are.
        host, container = (quote(part, safe="", errors="surrogatepass") for part in (self.host, name))
        return self.path / ".".join([host, container.replace(".", "%2E"), last])


def check_stage(stage: str, folder: Folder | None) -> None:
    """Raise Refused for a stage that there is not, or one that lacks what it needs."""
    if stage not in STAGES:
        raise Refused(f"recovery_key_stage: must be {', '.join(STAGES[:-1])} or {STAGES[-1]}, not {stage!r}")
    if stage != COMPLETE and folder is None:
        raise Refused(f"recovery_key_stage: {stage} needs recovery_key_directory, which has the keys between the two tasks")
    if folder is not None and not folder.keeps and stage != ENROL:
        raise Refused("keep_recovery_keys: false needs recovery_key_stage: enrol, which takes keys that were handed over before")


def as_in_schema(containers: t.Any, schema: t.Any) -> t.Any:
    """Return containers, which a host has described, with the methods that the schema lists for them; raises Refused for any others."""
    rows = schema.get("luks") or [] if isinstance(schema, Mapping) else None
    if not isinstance(containers, list) or not isinstance(rows, list):
        raise Refused("containers: must be a list, and schema a static schema")
    methods = {row.get("name"): row.get("unlock") for row in rows if isinstance(row, Mapping)}
    named = [one if isinstance(one, Mapping) else {} for one in containers]
    foreign = [one.get("name") for one in named if not methods.get(one.get("name"))]
    if foreign:
        raise Refused(f"containers: the schema lists no unlock for {foreign!r}. Nothing was changed.")
    return [{**one, "unlock": methods[one["name"]]} for one in named]


def with_recovery(containers: t.Any) -> list[str]:
    """Return the names of the containers that list a recovery key; what is no container is for the module to refuse."""
    listed = [one for one in containers if isinstance(one, Mapping)] if isinstance(containers, list) else []
    methods = {str(one.get("name") or one.get("node") or one.get("device")): one.get("unlock") for one in listed}
    return [
        name
        for name, unlock in methods.items()
        if isinstance(unlock, list) and any(isinstance(method, Mapping) and method.get("method") == RECOVERY for method in unlock)
    ]


def prepare_keys(call: Call, asked: Sequence[str], folder: Folder, *, check_mode: bool = False) -> Plain:
    """Return the result of a task that creates the recovery keys that containers need, and changes nothing on the host; raises Refused.

    `prepared` names the file of each key that the host has not confirmed, so that a run that was cut off hands these over again.
    """
    waiting = _waiting(asked, folder)
    seen = _checked(call({"part": "look", "recovery_keys": waiting, "written": True}), asked)
    if seen.get("failed"):
        return _shown(seen, {}, {}) | {"changed": False}
    needed, slots = seen["recovery_needed"], seen["recovery_slots"]
    lacking = any(name not in waiting or name in slots for name in needed)
    names = [] if check_mode else [*_created(needed, waiting, slots, folder), *(name for name in slots if name not in needed)]
    return {"changed": lacking, "steps": [], "prepared": [{"container": name, "file": str(folder.new(name))} for name in names]}


def with_uuids(prepared: Sequence[Plain], containers: t.Any) -> list[Plain]:
    """Return the rows of prepared keys with the UUIDs of the containers; raises Refused for what is none."""
    listed = [one for one in containers if isinstance(one, Mapping)] if isinstance(containers, list) else []
    uuids = {str(one.get("name") or one.get("node") or one.get("device")): str(one.get("uuid") or "") for one in listed}
    wrong = {name: uuid for name, uuid in uuids.items() if uuid and _UUID.fullmatch(uuid) is None}
    if wrong:
        raise Refused("; ".join(f"containers: the uuid of {name} is {uuid!r}, which is no UUID" for name, uuid in wrong.items()))
    return [{**row, "uuid": uuids.get(row["container"], "")} for row in prepared]


def change_keys(
    call: Call, asked: Sequence[str], folder: Folder | None, *, shows: bool, check_mode: bool = False, prepared: bool = False
) -> Plain:
    """Return the result of disk_keys; `asked` are the containers that list a recovery key. Raises Refused.

    Without a folder, and unless keys are to be shown, a run that needs one ends before anything is changed. With `prepared` it takes no
    other keys than those of prepare_keys.
    """
    waiting = _waiting(asked, folder) if folder is not None else {}
    # Where keys are neither kept nor shown, the run ends below, with what to do about it.
    hand_over: Plain = {"part": "begin", "recovery_keys": waiting, "written": folder is not None or not shows}
    begun = _checked(call(hand_over), asked)
    needed, slots = begun["recovery_needed"], begun["recovery_slots"]
    if begun.get("failed") or check_mode:
        return _shown(begun, {}, None if folder is None else {})
    if not needed:
        return _shown(begun, {}, None if folder is None else folder.confirm_all(slots))
    if folder is None and not shows:
        raise Refused(
            f"{', '.join(needed)} would get a recovery key, and nothing says where it is to be kept: give recovery_key_directory, "
            f"or say show_recovery_keys: true. Nothing was changed."
        )
    lacking = [name for name in needed if name not in waiting or name in slots]
    if prepared and lacking:
        raise Refused(f"recovery_key_stage: no key was prepared for {', '.join(lacking)}, so prepare them first. Nothing was changed.")
    keys = _created(needed, waiting, slots, folder)
    earlier = {name: key for name, key in waiting.items() if keys.get(name, key) != key}
    hand_over = {**hand_over, "recovery_keys": {**waiting, **keys}, "earlier_keys": earlier}
    added = _checked(call({**hand_over, "part": "add"}), asked)
    if added.get("failed"):
        return _shown(added, keys, {name: folder.new(name) for name in keys} if folder is not None else None)
    finished = _checked(call({**hand_over, "part": "finish", "added": added["added"]}), asked)
    result = _joined(added, finished, needed)
    lost = [name for name in needed if name not in finished["recovery_slots"]]
    if finished.get("failed") or lost:
        says = {} if finished.get("failed") else {"failed": True, "msg": f"The new recovery key of {', '.join(lost)} does not open it"}
        return _shown({**result, **says}, keys, {name: folder.new(name) for name in keys} if folder is not None else None)
    return _shown(result, keys, folder.confirm_all(finished["recovery_slots"]) if folder is not None else None)


def _waiting(asked: Sequence[str], folder: Folder) -> dict[str, str]:
    """Return the keys that are in files and not confirmed, by container; raises Refused."""
    return {name: key for name in asked if (key := folder.waiting(name)) is not None}


def _created(needed: Sequence[str], waiting: Mapping[str, str], slots: Mapping[str, int], folder: Folder | None) -> dict[str, str]:
    """Return a key for each container that needs one, all of them written."""
    keys = {}
    for name in needed:
        if name in waiting and name not in slots:
            keys[name] = waiting[name]
            continue
        keys[name] = new_recovery_key()
        if folder is not None:
            if name in slots:
                folder.confirm(name, slots[name])
            folder.write(name, keys[name])
    return keys


def _checked(result: Plain, asked: Sequence[str]) -> Plain:
    """Return the module's result with all that the controller reads; raises Refused for answers to other questions."""
    needed, slots = result.get("recovery_needed", []), result.get("recovery_slots", {})
    added, keys = result.get("added", {}), result.get("recovery_keys")
    if keys is not None or "recovery_key_files" in result:
        raise Refused("The host has sent recovery keys, which only the controller creates. Nothing was written; do not trust this host.")
    names = [*needed, *slots] if isinstance(needed, list) and isinstance(slots, dict) else [None]
    foreign = [name for name in names if name not in asked]
    if foreign:
        raise Refused(f"The host names containers that were not asked for: {foreign!r}. Nothing was written; do not trust this host.")
    rows = [*added.values()] if isinstance(added, dict) else [None]
    numbers = [number for row in rows for number in (row if isinstance(row, list) else [None])]
    wrong = [number for number in [*slots.values(), *numbers] if not _is_slot(number)]
    if wrong:
        raise Refused(f"The host names {wrong!r} as key slots, which are none. Nothing was written; do not trust this host.")
    return {**result, "recovery_needed": list(dict.fromkeys(needed)), "recovery_slots": slots, "added": added}


def _is_slot(number: t.Any) -> bool:
    # Python takes True for the number 1.
    return isinstance(number, int) and not isinstance(number, bool) and number in _SLOTS


def _joined(added: Plain, finished: Plain, needed: Sequence[str]) -> Plain:
    """Return one result of two parts. That new keys are confirmed belongs to adding them."""
    own = [step for step in finished.get("steps", []) if not (step["kind"] == "confirm" and step["container"] in needed)]
    diff = {**finished.get("diff", {}), "before": added.get("diff", {}).get("before", "")}
    return {**finished, "steps": [*added.get("steps", []), *own], "diff": diff, "changed": True}


def _shown(result: Plain, keys: Mapping[str, str], files: Mapping[str, Path] | None) -> Plain:
    """Return the result for the user: with the keys, or with their files."""
    public = {key: value for key, value in result.items() if key not in _FOR_THE_CONTROLLER}
    if isinstance(public.get("invocation"), dict) and isinstance(public["invocation"].get("module_args"), dict):
        given = {option: value for option, value in public["invocation"]["module_args"].items() if option != "hand_over"}
        public["invocation"] = {**public["invocation"], "module_args": given}
    if files is None:
        return {**public, "recovery_keys": dict(keys)}
    return {**public, "recovery_keys": {}, "recovery_key_files": {name: str(file) for name, file in files.items()}}
