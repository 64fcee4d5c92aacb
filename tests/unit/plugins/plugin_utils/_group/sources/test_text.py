# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""htools' text format: what each column means, and what is said when it is wrong. Against the programs: tests/peers."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Disk, Policy, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text

SHORT = """\
g1|u1|preferred|a,b
g2|u2|last_resort||n1,n2

n1|1000|10|900|5000|4000|4|M|u1
n2|2000|10|?|5000|4000|4|N|u1
n3|3000.5|10|900|5000|4000|4|Y|u2|3|x,y|Y|2|5|1.5

i1|100|200|2|running|Y|n1|n3|drbd|
i2|100|200|2|ADMIN_down|N|n1||plain|s:1,s:2|4|2|Y

htools:iextags:s

"""


def mistakes(text):
    with pytest.raises(InputError) as caught:
        parse_text(text)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_missing_late_columns_take_their_defaults():
    cluster = parse_text(SHORT)
    first, unknown, last = cluster.nodes
    assert (first.spindles, first.tags, first.exclusive_storage, first.free_spindles) == (1, (), False, 0)
    assert (first.node_cpus, first.cpu_speed, first.master) == (1, 1.0, True)
    assert (last.spindles, last.tags, last.exclusive_storage, last.free_spindles) == (3, ("x", "y"), True, 2)
    assert (last.node_cpus, last.cpu_speed, last.offline, last.group, last.total_memory) == (5, 1.5, True, "g2", 3000.5)
    assert (unknown.state, unknown.total_memory, unknown.total_cpus, unknown.spindles) == ("unreachable", 0.0, 0.0, 0)
    web, stopped = cluster.instances
    assert (web.secondary, web.spindle_use, web.disks, web.forthcoming) == ("n3", 1, (Disk(200),), False)
    assert (stopped.status, stopped.auto_balance, stopped.secondary) == (Status.ADMIN_DOWN, False, "")
    assert (stopped.tags, stopped.spindle_use, stopped.spindles, stopped.forthcoming) == (("s:1", "s:2"), 4, 2, True)
    assert [group.networks for group in cluster.groups] == [(), ("n1", "n2")]
    assert cluster.tags == ("htools:iextags:s",)
    assert cluster.policy == cluster.groups[0].policy == Policy()


def test_policies_belong_to_their_owners():
    owned = "g2|1,1,1,1,1,1|1,1,1,1,1,1;9,8,7,6,5,4;2,2,2,2,2,2;3,3,3,3,3,3|plain,ext|1.5|2\n"
    cluster = parse_text(SHORT + owned)
    policy = cluster.groups[1].policy
    assert len(policy.intervals) == 2
    assert (policy.intervals[0].maximum.memory, policy.intervals[0].maximum.spindle_use) == (9, 4)
    assert (policy.disk_templates, policy.vcpu_ratio, policy.spindle_ratio) == (("plain", "ext"), 1.5, 2.0)
    assert cluster.groups[0].policy == Policy()
    assert owned.replace("|2\n", "|2.0\n") in write_text(cluster)


def test_a_drained_node_has_a_column_of_its_own():
    drained = SHORT.replace("|2|5|1.5\n", "|2|5|1.5|drained\n")
    node = parse_text(drained).nodes[2]
    assert (node.state, node.offline, node.total_memory, node.cpu_speed) == ("drained", False, 3000.5, 1.5)
    assert "|Y|u2|3|x,y|Y|2|5|1.5|drained\n" in write_text(parse_text(drained))
    assert "|Y|u2|3|x,y|Y|2|5|1.5\n" in write_text(parse_text(SHORT))
    assert mistakes(drained.replace("drained", "empty")) == ["line 6, drained: is 'empty'; must be nothing, or drained"]


def test_all_mistakes_are_told_at_once_with_line_and_column():
    broken = (
        SHORT.replace("last_resort", "lastresort")
        .replace("|4|M|u1", "|-4|X|u9")
        .replace("running", "runing")
        .replace("|Y|n1|n3", "|maybe|n1|n3")
        .replace("n3|3000.5|10", "n3|much|10")
    )
    assert mistakes(broken) == [
        "line 2, alloc_policy: is 'lastresort'; must be one of preferred, last_resort, unallocable (did you mean last_resort?)",
        "line 4, t_cpu: is '-4'; must be a number, 0 or more",
        "line 4, role: is 'X'; must be one of Y (offline), N (online), M (master)",
        "line 4, group: unknown group 'u9'",
        "line 6, t_mem: is 'much'; must be a number, 0 or more",
        "line 8, status: is 'runing'; must be one of running, ERROR_up, ERROR_down, ERROR_nodedown, ERROR_nodeoffline, "
        "ERROR_wrongnode, ADMIN_down, ADMIN_offline, USER_down (did you mean running?)",
        "line 8, auto_balance: is 'maybe'; must be Y or N",
    ]


def test_names_must_refer_to_something():
    broken = SHORT.replace("|n1|n3|drbd", "|n7|n7|drbd").replace("i2|", "i1|")
    assert mistakes(broken) == [
        "line 9: the instance with the name i1 occurs twice, also at line 8",
        "line 8, primary: unknown node 'n7'",
        "line 8, secondary: unknown node 'n7'",
        "line 8, secondary: is also the primary node, n7; the two must differ",
    ]


def test_drbd_needs_a_second_node():
    assert mistakes(SHORT.replace("|n1|n3|drbd", "|n1||drbd")) == [
        "line 8, secondary: is missing; disk template drbd needs a second node",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "",
            "line 1: the file ends after 1 of 4 sections; missing: nodes, instances, cluster tags (an empty line ends a section)",
        ),
        (SHORT[:120], "line 6: has 3 columns instead of 9 to 16: name, t_mem, n_mem, f_mem, t_dsk, f_dsk, t_cpu, role, group uuid ..."),
    ],
)
def test_truncated_files_are_refused(text, says):
    assert says in mistakes(text)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("|1,1,1,1,1,1|1,1,1,1,1,1|plain|4|32", "line 13, min and max specs: has 1 specs; they must come in pairs of min and max"),
        (
            "|1,1,1|1,1,1,1,1,1;1,1,1,1,1,1|plain|4|32",
            "line 13, standard spec: '1,1,1' is not a spec; write 6 whole numbers: memory, cpus,",
        ),
        ("|1,1,1,1,1,1|1,1,1,1,1,1;1,1,1,1,1,1|plane|4|32", "line 13, disk templates[0]: is 'plane'; must be one of diskless"),
        ("gg|1,1,1,1,1,1|1,1,1,1,1,1;1,1,1,1,1,1|plain|4|32", "line 13, owner: unknown group 'gg'"),
    ],
)
def test_policies_are_checked(line, says):
    assert mistakes(SHORT + line + "\n")[0].startswith(says)


def test_interval_must_not_be_upside_down():
    told = mistakes(SHORT + "g1|1,1,1,1,1,1|5,1,1,1,1,1;4,1,1,1,1,1|plain|4|32\n")
    assert told == ["line 1, ipolicy.minmax[0].memory: min 5 and max 4 must be 0 <= min <= max"]


def test_sections_after_the_fifth_are_ignored_as_htools_does():
    assert parse_text(SHORT + "|1,1,1,1,1,1|1,1,1,1,1,1;1,1,1,1,1,1|plain|4|32\n\nnonsense\n").policy.vcpu_ratio == 4.0


def test_a_row_that_cannot_be_read_leaves_the_others_readable():
    text = "g\ud800|u\ud800|preferred||\n\na|9|0|9|9|9|8|N|u|1\n\n\n\n"
    with pytest.raises(InputError) as caught:
        parse_text(text)
    assert {mistake.place for mistake in caught.value.mistakes} >= {"line 1, name", "line 1, uuid"}


@pytest.mark.parametrize("tag", ["a|b", "a,b", "a\nb", "\n\n", "a\rb", "\x1b[2J", "a\u202eb", "\x00"])
@pytest.mark.parametrize("owner", ["groups", "nodes", "instances", ""])
def test_no_tag_is_written_that_would_be_another_column_or_line(owner, tag):
    cluster = parse_text(SHORT)
    tagged = (dataclasses.replace(getattr(cluster, owner)[0], tags=("x", tag)), *getattr(cluster, owner)[1:]) if owner else ("x", tag)
    with pytest.raises(InputError) as error:
        write_text(dataclasses.replace(cluster, **{owner or "tags": tagged}))
    assert [mistake.place for mistake in error.value.mistakes] == [f"{owner}[0].tags[1]" if owner else "tags[1]"]
