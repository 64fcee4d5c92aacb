# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cluster tags mean, by the words of the htools manual page."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.tags import TagRules, chosen, read_rules, received


def test_every_kind_of_rule_is_read_and_other_tags_are_ignored():
    rules = read_rules(
        [
            "htools:iextags:service",
            "htools:iextags:",
            "owner:me",
            "htools:migration:kernel",
            "htools:nlocation:rack",
            "htools:desiredlocation:rack",
            "htools:allowmigration:kernel:old::kernel:new",
            "htools:allowmigration:a::b::c",
        ],
    )
    assert rules == TagRules(
        exclusion=("service",),
        migration=("kernel:",),
        allowed=(("kernel:old", "kernel:new"),),
        location=("rack:",),
        desired=("rack",),
    )


def test_tags_are_chosen_by_prefix_once_in_order():
    assert chosen(["b:2", "a:1", "b:2", "bb"], ("b:", "bb")) == ("b:2", "bb")
    assert chosen(["a"], ()) == ()


def test_node_receives_its_own_migration_tags_and_those_allowed_in_one_step():
    rules = read_rules(
        ["htools:migration:k", "htools:allowmigration:k:1::k:2", "htools:allowmigration:k:0::k:1", "htools:allowmigration:k:7::other"],
    )
    assert received(["k:2", "other"], rules) == {"k:2", "k:1"}
