# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random worlds, and random requests in Placement's query string, from one seed."""

from __future__ import annotations

import random
import uuid

CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF"]
TRAITS = ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX2"]
SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Maker:
    """Makes worlds and requests; the same seed makes the same ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.aggregates = [self.uuid() for _unused in range(3)]

    def uuid(self):
        """A UUID that depends on the seed alone."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def some(self, values, most):
        """Up to `most` of the values, in their order."""
        wanted = self.random.sample(values, self.random.randint(0, most))
        return [value for value in values if value in wanted]

    def inventory(self):
        """An inventory whose min_unit is a multiple of step_size: there seed 002 and Placement word step_size alike."""
        step = self.random.choice([1, 1, 1, 2])
        return {
            "total": self.random.randint(4, 16),
            "reserved": self.random.choice([0, 0, 1]),
            "min_unit": self.random.choice([1, 1, 2]) * step,
            "max_unit": self.random.choice([100, 100, 6]),
            "step_size": step,
            "allocation_ratio": self.random.choice([1.0, 1.0, 1.5, 0.5]),
        }

    def world(self):
        """2 to 12 providers in some trees, some of them sharing, some of their inventory taken."""
        providers, held = [], {}
        for number in range(self.random.randint(2, 12)):
            parent = self.random.choice(providers)["uuid"] if providers and self.random.random() < 0.6 else None
            sharing = [SHARES] if self.random.random() < 0.15 else []
            names = self.some(CLASSES, 4)
            provider = {
                "uuid": self.uuid(),
                "name": f"provider{number}",
                "parent": parent,
                "inventories": {name: self.inventory() for name in names},
                "traits": self.some(TRAITS, 2) + sharing,
                "aggregates": self.some(self.aggregates, 2),
            }
            providers.append(provider)
            taken = {name: self.random.randint(1, 4) for name in names if self.random.random() < 0.2}
            if taken:
                held[provider["uuid"]] = taken
        return {
            "providers": providers,
            "allocations": {self.uuid(): held} if held else {},
            "custom_traits": TRAITS[:2],
            "custom_classes": [],
        }

    def request(self, world):
        """The parameters of a request that Placement accepts, as (key, value) pairs."""
        suffixes = ["_A", "_B", "_C"][: self.random.randint(0, 3)]
        resourceless = [suffix for suffix in suffixes[1:] if self.random.random() < 0.2]
        pairs = []
        for suffix in suffixes + ([""] if not suffixes or self.random.random() < 0.6 else []):
            if suffix not in resourceless:
                names = self.some(CLASSES, 2) or [self.random.choice(CLASSES)]
                pairs.append((f"resources{suffix}", ",".join(f"{name}:{self.random.choice([1, 1, 2, 3, 4])}" for name in names)))
            pairs.extend(self.group_limits(suffix, world, needed=suffix in resourceless))
        subtrees = [self.some(suffixes, len(suffixes))] if suffixes and self.random.random() < 0.4 else []
        lonely = [suffix for suffix in resourceless if all(suffix not in subtree for subtree in subtrees)]
        if lonely:
            subtrees.append([suffixes[0], *lonely])
        pairs.extend(("same_subtree", ",".join(subtree)) for subtree in subtrees if subtree)
        if self.random.random() < 0.2:
            pairs.append(("root_required", self.random.choice(["", "!"]) + self.random.choice(TRAITS)))
        pairs.append(("group_policy", self.random.choice(["none", "none", "isolate"])))
        return pairs

    def group_limits(self, suffix, world, *, needed):
        """Zero to two limits on a group's providers; at least one where a group has nothing else."""
        kinds = self.random.sample(["required", "any", "forbidden", "member", "not_member", "in_tree"], self.random.choice([0, 0, 0, 1, 2]))
        for kind in kinds or (["required"] if needed else []):
            trait, aggregate = self.random.choice(TRAITS), self.random.choice(self.aggregates)
            if kind == "required":
                yield f"required{suffix}", trait
            elif kind == "any":
                yield f"required{suffix}", "in:" + ",".join(self.random.sample(TRAITS, 2))
            elif kind == "forbidden":
                yield f"required{suffix}", f"!{trait}"
            elif kind == "member":
                yield f"member_of{suffix}", "in:" + ",".join(self.random.sample(self.aggregates, 2))
                if self.random.random() < 0.3:
                    yield f"member_of{suffix}", aggregate
            elif kind == "not_member":
                yield f"member_of{suffix}", f"!{aggregate}"
            else:
                yield f"in_tree{suffix}", self.random.choice(world["providers"])["uuid"]
