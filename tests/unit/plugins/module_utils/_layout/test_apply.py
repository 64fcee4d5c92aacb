# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The course of a run: what is planned, what is carried out, and what is told of it, with steps that are only said to be done."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Request, stop_by_signal
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import LayoutPlan
from ansible_collections.bareon.allocator.plugins.module_utils._layout.protected import Protection
from ansible_collections.bareon.allocator.plugins.module_utils._layout.report import as_failure
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import MakeFilesystem
from ansible_collections.bareon.allocator.plugins.module_utils._steps.key import NO_KEY, Key
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import OpenLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import CreateVolumeGroup, FinishLogicalVolumes
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import CommandFailed, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import StopArray
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import installed, maker_on, simple
from ansible_collections.bareon.allocator.tests.support.host.step_kinds import all_kinds

STOP = StopArray("/dev/md127")
GROUP = CreateVolumeGroup("os", ("/dev/sda1",))
MAKE = MakeFilesystem("/dev/sda2", "ext4", "u", "", ())
OPEN = OpenLuks("/dev/sda1", "keys")
ALL = (STOP, GROUP, MAKE)
DONE = LayoutPlan()


class Run:
    """A run of which the plans are given, one for every look; `failing` is a step that fails."""

    def __init__(self, monkeypatch, *plans, failing=None):
        self.plans, self.failing = list(plans), failing
        self.looks, self.carried_out = [], []
        monkeypatch.setattr(layout_run, "read_present", self.look)
        monkeypatch.setattr(layout_run, "plan_steps", lambda *_arguments: self.plans.pop(0))
        for kind in all_kinds():
            monkeypatch.setattr(kind, "run", lambda step, _machine: self.carry_out(step))
        self.machine = RecordingMachine(files={"/proc/misc": "device-mapper", "/proc/devices": "9 md"})

    def look(self, _machine, _layout):
        self.looks.append(Present(Tree({}), ()))
        return self.looks[-1]

    def carry_out(self, step):
        if step is self.failing:
            raise CommandFailed(["tool", "word"], 5, "its words")
        self.carried_out.append(step)
        self.machine.events.append(("step", step))

    def apply(self, stop=lambda: False, key=NO_KEY):
        return layout_run.apply(Request(Layout()), self.machine.with_key(key), stop)

    def foresee(self, key=NO_KEY):
        return layout_run.foresee(Request(Layout()), self.machine.with_key(key))


def test_disks_are_flushed_before_a_group_is_made_of_several_and_before_the_report(monkeypatch):
    """LVM writes and flushes nothing: a power cut could leave a group without its physical volumes, or nothing of what was reported."""
    finish = FinishLogicalVolumes("os", ("root",))
    run = Run(monkeypatch, LayoutPlan((GROUP, MAKE, finish)), DONE)
    assert run.apply().problem is None
    events = [event for event in run.machine.events if event[0] in ("step", "flush")]
    flush = ("flush", ())
    assert events == [flush, ("step", GROUP), ("step", MAKE), ("step", finish), flush]


def test_steps_are_done_in_their_order_and_looked_at(monkeypatch):
    run = Run(monkeypatch, LayoutPlan(ALL, notes=("careful",)), DONE)
    report = run.apply()
    assert (report.done, report.pending, report.problem, report.notes) == (ALL, (), None, ("careful",))
    assert run.carried_out == list(ALL)
    assert [report.before, report.now] == run.looks


def test_udev_is_waited_for_before_another_kind_of_step_and_at_the_end(monkeypatch):
    other = MakeFilesystem("/dev/sda3", "xfs", "u", "", ())
    run = Run(monkeypatch, LayoutPlan((GROUP, MAKE, other, STOP)), DONE)
    run.carry_out = lambda step: run.machine.events.append(("step", step))
    run.apply()
    events = [event for event in run.machine.events if event[0] in ("step", "settle")]
    settle = ("settle",)
    assert events == [("step", GROUP), settle, ("step", MAKE), ("step", other), settle, ("step", STOP), settle]


def test_nothing_to_do_is_nothing_done_in_one_look(monkeypatch):
    run = Run(monkeypatch, DONE)
    report = run.apply()
    assert (report.done, report.problem, len(run.looks)) == ((), None, 1)
    assert run.machine.events == []


def test_what_is_opened_is_looked_into_and_then_all_is_done(monkeypatch):
    run = Run(monkeypatch, LayoutPlan((OPEN,), again=True), LayoutPlan(ALL), DONE)
    report = run.apply(key=Key(b"x"))
    assert (report.done, report.problem, len(run.looks)) == ((OPEN, *ALL), None, 3)


@pytest.mark.parametrize("readable", [True, False])
def test_the_list_of_protected_disks_is_read_again_after_what_was_opened(monkeypatch, readable):
    run = Run(monkeypatch, LayoutPlan((OPEN,), again=True), LayoutPlan(ALL), DONE)
    planned, added = [], (Protection("id", "the list"),)
    plan_steps = layout_run.plan_steps

    def remember(*options):
        planned.append(options[5])
        return plan_steps(*options)

    def read():
        if not readable:
            raise StepFailed("cannot be read")
        return added

    monkeypatch.setattr(layout_run, "plan_steps", remember)
    report = layout_run.apply(Request(Layout()), run.machine.with_key(Key(b"x")), lambda: False, protections=read)
    assert planned == ([(), added, added] if readable else [()])
    assert (report.done, report.problem) == (((OPEN, *ALL), None) if readable else ((OPEN,), "cannot be read"))


def test_opening_that_comes_to_no_end_ends(monkeypatch):
    run = Run(monkeypatch, *[LayoutPlan((OPEN,), again=True)] * 20)
    report = run.apply(key=Key(b"x"))
    assert "rounds of opening devices" in report.problem


def test_refusals_are_told_at_once_and_nothing_is_done(monkeypatch):
    for doing, says in (("apply", "cannot be made, and nothing on the disks was changed"), ("foresee", "cannot be made")):
        run = Run(monkeypatch, LayoutPlan(refusals=("one is busy", "two is full")))
        report = getattr(run, doing)()
        assert report.problem == f"The layout {says}:\n- one is busy\n- two is full"
        assert (report.done, run.carried_out) == ((), [])


def test_refusals_after_an_opening_say_what_was_opened(monkeypatch):
    run = Run(monkeypatch, LayoutPlan((OPEN,), again=True), LayoutPlan(refusals=("xfs is on it",)))
    report = run.apply(key=Key(b"x"))
    assert report.done == (OPEN,)
    assert report.problem == "The layout cannot be made, and nothing was done but what is listed below:\n- xfs is on it"
    said = as_failure(report)["msg"]
    assert "Done before:\n- open /dev/sda1 as /dev/mapper/keys" in said
    assert "half done" not in said


def encrypted():
    """The state of a host with a LUKS container that is open, and its layout."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "keys"), 100, "luks-fs", "keys", "ext4")
    maker.fill(maker.partition("sda", 50, "plain"), 50, "fs", "plain", "ext4")
    return parse_static_schema(maker.schema), installed(maker).present()


@pytest.mark.parametrize(
    ("key", "code", "said"),
    [
        (Key(b"right"), 0, None),
        (Key(b"wrong"), 2, "the given key of the LUKS container keys-crypt does not open /dev/sda1"),
        (Key(file="/keys/wrong"), 2, "does not open /dev/sda1"),
        (Key(b"right", files={"keys-crypt": "/keys/wrong"}), 2, "does not open /dev/sda1"),
        (Key(b"right"), 1, "opens /dev/sda1: cryptsetup open"),
        (Key(), 2, None),
    ],
)
def test_a_key_that_does_not_open_what_is_there_is_refused_although_it_is_open(monkeypatch, key, code, said):
    """It would be named in crypttab, and the next start would find out."""
    layout, present = encrypted()
    monkeypatch.setattr(layout_run, "read_present", lambda *_arguments: present)
    machine = RecordingMachine(failing={"cryptsetup open --test-passphrase": code})
    report = layout_run.apply(Request(layout), machine.with_key(key), lambda: False)
    assert report.done == ()
    assert (report.problem is None) if said is None else (said in str(report.problem))
    file = key.of("keys-crypt").file or "-"
    tested = [f"cryptsetup open --test-passphrase --type=luks --disable-external-tokens --key-file={file} /dev/sda1"] if key.given else []
    assert machine.commands == tested
    assert list(machine.given.values()) == ([key.passphrase] if key.passphrase and not key.files else [])
    seen = layout_run.foresee(Request(layout), RecordingMachine(failing={"cryptsetup open --test-passphrase": code}).with_key(key))
    assert any(said in note for note in seen.notes) if said else seen.notes == ()


def test_of_what_is_refused_missing_tools_come_first(monkeypatch):
    """Without LVM a physical volume seems to be in no group, and a group to have no room: the tool is what is wrong."""
    maker = simple()
    host = installed(maker)
    blind = dataclasses.replace(host.present(), physical=(), logical=())
    monkeypatch.setattr(layout_run, "read_present", lambda *_arguments: blind)
    request = Request(parse_static_schema(maker.schema))
    for run in (layout_run.foresee, lambda *given: layout_run.apply(*given, lambda: False)):
        lines = str(run(request, RecordingMachine(tools=())).problem).splitlines()
        assert lines[1] == "- there is no lvm2 on this host: install the package lvm2"
        assert any("LVM2_member" in line for line in lines[2:])
        assert "lvm2 on this host" not in str(run(request, RecordingMachine()).problem)


def test_what_the_host_lacks_is_told_before_anything_is_done(monkeypatch):
    run = Run(monkeypatch, LayoutPlan((*ALL, OPEN)))
    run.machine.tools = set()
    report = run.apply()
    assert all(word in report.problem for word in ("mdadm", "lvm2", "mkfs.ext4", "cryptsetup", "luks_key"))
    assert (report.done, report.pending, run.carried_out) == ((), (*ALL, OPEN), [])


def test_check_mode_warns_of_what_the_host_lacks(monkeypatch):
    """It may be installed by a task before this one, which check mode did not do either."""
    run = Run(monkeypatch, LayoutPlan((*ALL, OPEN), notes=("careful",)))
    run.machine.tools = set()
    report = run.foresee()
    assert (report.problem, report.pending, report.done) == (None, (*ALL, OPEN), ())
    assert report.notes[0] == "careful"
    assert any("lvm2" in note for note in report.notes)
    assert run.carried_out == []


def test_check_mode_says_that_it_cannot_look_into_what_is_closed(monkeypatch):
    assert "must be opened" in Run(monkeypatch, LayoutPlan((OPEN,), again=True)).foresee(key=Key(b"x")).notes[-1]
    assert Run(monkeypatch, LayoutPlan(ALL)).foresee().notes == ()


def test_a_failure_stops_all_and_is_told_with_what_was_done_and_what_was_not(monkeypatch):
    run = Run(monkeypatch, LayoutPlan(ALL), failing=GROUP)
    report = run.apply()
    assert (report.done, report.failed, report.pending, run.carried_out) == ((STOP,), GROUP, (MAKE,), [STOP])
    result = as_failure(report)
    assert "Could not create the volume group os on /dev/sda1: tool word failed with code 5: its words" in result["msg"]
    assert result["msg"].index("Done before:\n- stop") < result["msg"].index("Not begun:\n- make ext4")
    assert result["changed"] is True
    assert [(step["kind"], step["device"], step["done"]) for step in result["steps"]] == [
        ("stop_array", "/dev/md127", True),
        ("create_volume_group", "os", False),
        ("make_filesystem", "/dev/sda2", False),
    ]
    assert result["failed_step"]["kind"] == "create_volume_group"


def test_a_failure_of_the_first_step_may_have_changed_something(monkeypatch):
    result = as_failure(Run(monkeypatch, LayoutPlan(ALL), failing=STOP).apply())
    assert result["changed"] is True
    assert "Done before: nothing" in result["msg"]


def test_a_refusal_has_changed_nothing(monkeypatch):
    result = as_failure(Run(monkeypatch, LayoutPlan(refusals=("busy",))).apply())
    assert (result["changed"], result["steps"]) == (False, [])
    assert "failed_step" not in result
    assert "Not begun" not in result["msg"]


@pytest.mark.parametrize("left", [LayoutPlan((MAKE,)), LayoutPlan(refusals=("it is full",)), LayoutPlan((OPEN,), again=True)])
def test_a_host_that_is_not_as_wanted_after_all_is_a_failure(monkeypatch, left):
    report = Run(monkeypatch, LayoutPlan(ALL), left).apply()
    assert report.done == ALL
    assert "All steps are done, but" in report.problem
    assert any(part in report.problem for part in ("make ext4", "it is full", "open /dev/sda1"))


def test_a_signal_stops_before_the_next_step(monkeypatch):
    asked = [False, True]
    report = Run(monkeypatch, LayoutPlan(ALL)).apply(stop=lambda: asked.pop(0))
    assert (report.done, report.pending) == ((STOP,), (GROUP, MAKE))
    assert "Stopped by a signal" in report.problem
    assert "Not begun:\n- create" in as_failure(report)["msg"]


def test_signals_are_noted_and_their_handlers_given_back():
    before = signal.getsignal(signal.SIGTERM)
    with stop_by_signal() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked()
    assert signal.getsignal(signal.SIGTERM) is before
