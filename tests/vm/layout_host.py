# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules on a test machine, run there as processes of their own: without Ansible each run costs seconds less, and there are many.

What a playbook does with them is tested in test_profiles.py, through Ansible.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.eligible import EligibleKind
from ansible_collections.bareon.allocator.tests.support.host.layout_checks import check_all
from ansible_collections.bareon.allocator.tests.support.host.sent_code import gather_code
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Guest

Plain = dict[str, t.Any]

_HERE = Path(__file__).parent
_CODE = "/root/python"
KEY_FILE = "/root/layout-key"
_MD_CLEANS = 15.0
"""Seconds after which md has cleaned its bitmap and its superblocks: it looks every five, and the processor is slow."""


def code(folder: Path) -> Path:
    """Gather what the modules take, and the tools of these tests."""
    for tool in ("make_layout.py", "run_modules.py"):
        shutil.copy(_HERE / tool, folder)
    return gather_code(folder)


class LayoutHost:
    """A machine on which layouts are made. It needs `code` once, unless it goes on from a start that has it."""

    def __init__(self, machine: Guest) -> None:
        self.machine = machine

    def prepare(self, folder: Path) -> None:
        """Send the code, compile it by running it, and make a key for LUKS."""
        self.machine.send(code(folder), to=_CODE)
        self.machine.run("sh", "-c", f"umask 077; printf %s 'correct horse battery staple' >{KEY_FILE}")
        self.machine.run("python3", "-m", "compileall", "-q", _CODE)
        self.calm_arrays()

    def calm_arrays(self) -> None:
        """Have md build up new arrays slowly until the next start: that is none of our work, and takes all of an emulated processor."""
        self.shell("modprobe md_mod; echo 100 >/proc/sys/dev/raid/speed_limit_max; echo 100 >/proc/sys/dev/raid/speed_limit_min")

    def build_up_arrays(self) -> None:
        """Have md build up arrays as fast as it can, from now on, and wait until all are."""
        self.shell("echo 1000000 | tee /proc/sys/dev/raid/speed_limit_max /proc/sys/dev/raid/speed_limit_min")
        self.shell("for array in /dev/md/*; do mdadm --wait $array || true; done")

    def writes_at_rest(self, disks: t.Sequence[Disk]) -> int:
        """Return how many writes these disks have taken once no more come: md cleans bitmaps and superblocks seconds after the last one."""
        count = self.machine.written(disks)
        while True:
            time.sleep(_MD_CLEANS)
            last, count = count, self.machine.written(disks)
            if count == last:
                return count

    def facts(self) -> Plain:
        """Return the hardware as disk_facts finds it, without the disk that the machine starts from."""
        found = t.cast("Plain", self._result(self._run("disk_facts", {}))["ansible_facts"]["bareon_hardware"])
        return {**found, "disks": [disk for disk in found["disks"] if not disk["id"].endswith("-ROOT")]}

    def plan(self, schema: t.Sequence[Plain], *ids: str) -> Plain:
        """Plan with these disks only, or with all; what is active on them from a former life is in the way of nothing but the doing."""
        hardware = self.facts()
        chosen = [disk for disk in hardware["disks"] if not ids or disk["id"] in ids]
        return Planner(list(schema), Objective.FAIR, 0, [EligibleKind.IN_USE]).plan({**hardware, "disks": chosen})

    def attempt(self, schema: Plain, **options: t.Any) -> Plain:
        """Run disk_layout and return its result, whatever it is."""
        return self._result(self._run("disk_layout", self._options(schema, options)))

    def attempt_each(self, schema: Plain, runs: t.Iterable[Plain]) -> list[Plain]:
        """Run disk_layout with each of these options, one after the other, and return its results, whatever they are."""
        task = json.dumps({"module": "disk_layout", "runs": [self._options(schema, options) for options in runs]})
        outputs = self.machine.run("env", f"PYTHONPATH={_CODE}", "python3", f"{_CODE}/run_modules.py", text=task)
        return [result_in(output, "") for output in json.loads(outputs)]

    def apply(self, schema: Plain, **options: t.Any) -> Plain:
        """Run disk_layout, which has to succeed."""
        result = self.attempt(schema, **options)
        assert not result.get("failed"), result["msg"]
        return result

    def adopt(self, disks: t.Sequence[Disk]) -> Plain:
        """Return what disk_layout makes of what is on disks, which it has to be able to take over."""
        result = self._result(self._run("disk_layout", {"adopt": True, "disks": [disk.link for disk in disks]}))
        assert not result.get("failed"), result["msg"]
        return result

    def foresee(self, schema: Plain, **options: t.Any) -> Plain:
        """Run disk_layout in check mode, which has to succeed."""
        return self.apply(schema, _ansible_check_mode=True, _ansible_diff=True, **options)

    def refuse(self, schema: Plain, **options: t.Any) -> str:
        """Run disk_layout, which has to refuse; return why."""
        result = self.attempt(schema, **options)
        assert result.get("failed"), result
        assert not any(step["done"] for step in result.get("steps", [])), result
        return str(result["msg"])

    def begin(self, schema: Plain, **options: t.Any) -> subprocess.Popen[str]:
        """Begin a run of disk_layout; its result is on its output when it ends."""
        text = json.dumps({"ANSIBLE_MODULE_ARGS": self._options(schema, options)})
        return self.machine.begin(*self._command("disk_layout"), text=text)

    def check(self, plan: Plain) -> None:
        """Look at a layout with the standard tools: it is the plan, to the MiB and the extent."""
        check_all(plan, self.look(plan["schema"]))

    def look(self, schema: Plain) -> Plain:
        return t.cast("Plain", json.loads(self.machine.run("python3", f"{_CODE}/make_layout.py", text=json.dumps({"made": [schema]})))[0])

    def shell(self, script: str) -> str:
        """Run a script that stops at the first command that fails."""
        return self.machine.run("bash", "-euo", "pipefail", "-s", text=script)

    def _options(self, schema: Plain, options: t.Mapping[str, t.Any]) -> Plain:
        key = {"luks_key_file": KEY_FILE} if schema.get("luks") else {}
        return {"schema": schema, **key, **options}

    def _command(self, module: str) -> tuple[str, ...]:
        return "env", f"PYTHONPATH={_CODE}", "python3", "-m", f"ansible_collections.bareon.allocator.plugins.modules.{module}"

    def _run(self, module: str, options: Plain) -> subprocess.CompletedProcess[str]:
        return self.machine.attempt(*self._command(module), text=json.dumps({"ANSIBLE_MODULE_ARGS": options}))

    def _result(self, done: subprocess.CompletedProcess[str]) -> Plain:
        return result_in(done.stdout, f"rc {done.returncode}: {done.stderr}")


def result_in(output: str, else_says: str) -> Plain:
    """Return a module's result."""
    assert output.lstrip().startswith("{"), f"{else_says}{output}"
    return t.cast("Plain", json.loads(output))
