# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random histories of several controllers on one ledger, and a model in memory that says what each task must do.

Controllers act on what they saw earlier: generations of consumers and providers, and candidates that they found. The model keeps a
dictionary of providers and a list of consumers, and knows no database, no UUID and none of the ledger's code. Generations are not computed
but watched: that of a name never goes back, whatever has become of its bearer.
"""

from __future__ import annotations

import copy
import itertools
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial

from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_first import claim_first
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Seen
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.history import Asked, prune_history, read_history
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers, remove_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.quotas import put_quota
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_consumers, read_numbers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reap import reap
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.batch import parse_batch, place_batch
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

HOSTS = ("h0", "h1", "h2", "h3")
NAMES = ("ci", "web")
PROJECTS = (None, "red", "blue")
USERS = (None, "ann", "bob")
LEASES = (None, None, None, 0, 1, 2, 3)
JOBS = {f"job{size}": size for size in range(1, 5)}
"""Consumers of batches, and how much each of them always asks for."""
RARE = 0.06
TRAIT = "CUSTOM_ECC"
CHECKED_EVERY = 25
KEPT_MONTHS = 12
"""How long the past is kept; reading all of it would make long runs quadratic."""
UNIT = 30 * 86400
"""Leases end in the middle of a month; months pass, and the seconds that a run takes do not matter."""


ALLOCATION = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
REQUEST = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()} | {"order": "none"}


class Refused(Exception):
    """The model says that a task must fail."""


@dataclass
class Host:
    """A provider in the model; `drained` is the month in which its drain ends, 0 for never."""

    total: int
    has_trait: bool
    drained: int | None = None


@dataclass
class Holder:
    """A consumer in the model, which has something."""

    name: str
    project: str | None
    user: str | None
    held: dict = field(default_factory=dict)
    ends: int | None = None
    """The month in which its lease ends."""
    extended: int = 0
    """The number of the task that gave it its lease; no two leases end in one second."""
    since: dict = field(default_factory=dict)
    """The month in which it got what it has, by host."""


class Model:
    """What the documentation says of owners, room and names, in the plainest words."""

    def __init__(self):
        self.hosts = {}
        self.holders = []
        self.registered = Counter()
        self.month = 0
        self.quotas = {}
        self.past = Counter()

    def used(self, host):
        return sum(holder.held.get(host, 0) for holder in self.holders)

    def put(self, name, total, has_trait):
        before = self.hosts.get(name)
        self.registered[name] += before is None
        self.hosts[name] = Host(total, has_trait, before and before.drained)
        return self.hosts[name] != before

    def replace(self, name, total, has_trait):
        """Another host takes the place of one, if it has room for what that one has given."""
        if name in self.hosts and self.used(name) > total:
            raise Refused
        self.registered[name] += 1
        self.hosts[name] = Host(total, has_trait)
        for holder in self.holders:
            if name in holder.held:
                self.past[holder.project, holder.user, name, holder.held[name], holder.since[name], self.month] += 1
                holder.since[name] = self.month
        return True

    def drain(self, name, until):
        """Return whether anything changes; a drain is for some months, 0 for ever, or None. No two ends are one second."""
        before = self.hosts[name].drained
        self.hosts[name].drained = self.month + until if until else until
        return bool(until) or before != until

    def free(self, name):
        """How much a host still gives."""
        host = self.hosts[name]
        return 0 if host.drained is not None else host.total - self.used(name)

    def remove(self, name):
        if self.used(name):
            raise Refused
        return self.hosts.pop(name, None) is not None

    def find(self, name, project, user, take_over):
        """The consumer that a task means; None for a new one."""
        found = [holder for holder in self.holders if holder.name == name]
        if project is not None:
            mine = [holder for holder in found if holder.project == project] or [holder for holder in found if holder.project is None]
            if not mine and take_over:
                mine = found
        else:
            mine = [holder for holder in found if holder.project is None]
            mine = mine or [holder for holder in found if user is not None and holder.user == user] or found
        if len(mine) > 1:
            raise Refused
        return mine[0] if mine else None

    def sleep(self):
        """A month passes; what ends holds nothing."""
        self.month += 1
        for host in self.hosts.values():
            if host.drained and host.drained <= self.month:
                host.drained = None
        for holder in self.holders:
            if holder.ends is not None and holder.ends <= self.month:
                self.end(holder, {}, holder.ends)
        self.holders = [holder for holder in self.holders if holder.ends is None or holder.ends > self.month]

    def end(self, holder, wanted, month, owner=None):
        """Remember what a consumer does not have any more, or not for the same owner; what it gets begins now."""
        stays = owner in (None, (holder.project, holder.user))
        for host, amount in list(holder.held.items()):
            if not (stays and wanted.get(host) == amount):
                self.past[holder.project, holder.user, host, amount, holder.since.pop(host), month] += 1
        for host in wanted:
            holder.since.setdefault(host, self.month)

    def forget(self, months):
        """Forget what ended so many months ago or earlier."""
        self.past = Counter({span: count for span, count in self.past.items() if span[-1] > self.month - months})

    @property
    def history(self):
        """What was had and is had, as (project, user, host, amount, the months of its beginning and its end)."""
        present = Counter(
            (holder.project, holder.user, host, amount, holder.since[host], None)
            for holder in self.holders
            for host, amount in holder.held.items()
        )
        return self.past + present

    def limit(self, project, most):
        """Return whether the quota of a project changes; None is none."""
        changed = self.quotas.get(project) != most
        self.quotas[project] = most
        return changed

    def refuse_beyond_quota(self, project, more):
        """Refuse what a project would have beyond its quota."""
        most = self.quotas.get(project)
        has = sum(sum(holder.held.values()) for holder in self.holders if holder.project == project)
        if most is not None and more > 0 and has + more > most:
            raise Refused

    def claim(self, name, project, user, take_over, wanted, seen_trait=(), lease=None, task=0):
        """Return whether anything changes. A lease is a number of months, or 0 for no end."""
        holder = self.find(name, project, user, take_over)
        if any(host not in self.hosts for host in wanted):
            raise Refused
        if holder is not None and not take_over:
            owners = ((holder.project, project), (holder.user, user))
            if any(None not in pair and pair[0] != pair[1] for pair in owners):
                raise Refused
        had = {} if holder is None else holder.held
        for host, amount in wanted.items():
            more = amount - had.get(host, 0)
            if more > 0 and self.hosts[host].drained is not None:
                raise Refused
            if more > 0 and self.used(host) + more > self.hosts[host].total:
                raise Refused
        belongs = project if project is not None or holder is None else holder.project
        has = 0 if holder is None or holder.project != belongs else sum(had.values())
        self.refuse_beyond_quota(belongs, sum(wanted.values()) - has)
        owned = holder is not None and project in (None, holder.project) and user in (None, holder.user)
        ends, extended = (holder.ends, holder.extended) if holder is not None else (None, 0)
        if lease is not None:
            ends, extended = (self.month + lease, task) if lease else (None, 0)
        is_kept = wanted == had and ((owned and (ends, extended) == (holder.ends, holder.extended)) or not wanted)
        if not is_kept and any(not self.hosts[host].has_trait for host in seen_trait):
            raise Refused
        if holder is None and not wanted:
            return False
        if not wanted:
            self.end(holder, {}, self.month)
            self.holders.remove(holder)
            return True
        if holder is None:
            self.holders.append(Holder(name, project, user, dict(wanted), ends, extended, dict.fromkeys(wanted, self.month)))
            return True
        before = (holder.project, holder.user, dict(holder.held), holder.ends, holder.extended)
        owner = (holder.project if project is None else project, holder.user if user is None else user)
        self.end(holder, wanted, self.month, owner)
        holder.project = holder.project if project is None else project
        holder.user = holder.user if user is None else user
        holder.held, holder.ends, holder.extended = dict(wanted), ends, extended
        return before != (holder.project, holder.user, holder.held, ends, extended)


class Controller:
    """One controller: its connection, and what it has seen."""

    def __init__(self, url):
        self.opened = open_ledger(url, timeout=3600)
        self.ledger = self.opened.__enter__()
        self.hosts = {}
        self.consumers = {}
        self.candidates = []

    def close(self):
        self.opened.__exit__(None, None, None)

    def look(self, history):
        """Remember all generations, and the hosts that have the trait."""
        world, consumers, numbers = self.ledger.read(
            lambda connection: (read_world(connection), read_consumers(connection), read_numbers(connection, HOSTS))
        )
        self.hosts = {provider.name: provider.generation for provider in world.providers}
        self.consumers = {(each.name, each.project): each.generation for each in consumers.values()}
        self.candidates = [
            (
                Seen(numbers[each.name][0], each.uuid, each.name, each.generation, (), each.traits, each.aggregates),
                history.registered(each.name),
            )
            for each in world.providers
            if TRAIT in each.traits
        ]
        history.watch(world, consumers)


class History:
    """Tasks of several controllers, each compared with the model; `refused`, `changed` and `same` count how they ended."""

    def __init__(self, urls, seed):
        self.random = random.Random(seed)
        self.model = Model()
        self.controllers = [Controller(url) for url in urls]
        self.ended = Counter()
        self.highest = {}
        self.said = ()
        self.last = ""
        self.number = 0
        self.controllers[0].look(self)
        assert not self.controllers[0].hosts, "the ledger is not empty"

    def run(self, tasks):
        """Run so many tasks."""
        try:
            for number in range(tasks):
                controller = self.random.choice(self.controllers)
                kinds = (self.put, self.remove, self.claim, self.claim, self.claim, self.release, self.claim_seen, self.look, self.batch)
                rare = (self.sleep, self.reap, self.limit, self.replace, self.drain, self.finish)
                self.number = number
                self.random.choice(rare if self.random.random() < RARE else kinds)(controller)
                if number % CHECKED_EVERY == CHECKED_EVERY - 1:
                    self.check()
            self.check()
        finally:
            for controller in self.controllers:
                controller.close()

    def compare(self, task, told):
        """Run a task in the model and on the ledger; both must say the same."""
        try:
            expected = told()
        except Refused:
            expected = None
        try:
            done = task().changed
        except NoSolution:
            done = None
        assert done == expected, self.said
        self.count("refused" if done is None else "changed" if done else "same")

    def count(self, how):
        self.last = how
        self.ended[how] += 1

    def put(self, controller):
        name, total, has_trait = self.random.choice(HOSTS), self.random.randint(2, 9), self.random.random() < 0.6
        entry = {"name": name, "inventories": {"VCPU": total}, "traits": [TRAIT] if has_trait else []}
        stale = self.give_generation(entry, controller.hosts, name, self.present_host(name), "generation")
        changes = parse_changes([entry], "providers[{}]")
        self.said = ("put", entry)

        def told():
            host = self.model.hosts.get(name)
            if stale and host is not None and (host.total, host.has_trait) != (total, has_trait):
                raise Refused
            return self.model.put(name, total, has_trait)

        self.compare(lambda: controller.ledger.write(partial(put_providers, changes=changes)), told)

    def remove(self, controller):
        name = self.random.choice(HOSTS)
        entry = {"name": name}
        stale = self.give_generation(entry, controller.hosts, name, self.present_host(name), "generation")
        self.said = ("remove", entry)

        def told():
            if stale and name in self.model.hosts:
                raise Refused
            return self.model.remove(name)

        changes = parse_changes([entry], "providers[{}]")
        self.compare(lambda: controller.ledger.write(partial(remove_providers, changes=changes)), told)

    def replace(self, controller):
        """A host is replaced under its own name, and again, which changes nothing."""
        name, total, has_trait = self.random.choice(HOSTS), self.random.randint(2, 12), self.random.random() < 0.6
        new = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        entry = {"name": name, "uuid": new, "replaces": name, "inventories": {"VCPU": total}, "traits": [TRAIT] if has_trait else []}
        once_more = parse_changes([dict(entry)], "providers[{}]")
        stale = self.give_generation(entry, controller.hosts, name, self.present_host(name), "generation")
        self.said = ("replace", entry)

        def told():
            if stale and name in self.model.hosts:
                raise Refused
            return self.model.replace(name, total, has_trait)

        changes = parse_changes([entry], "providers[{}]")
        self.compare(lambda: controller.ledger.write(partial(put_providers, changes=changes)), told)
        if self.last == "changed":
            self.compare(lambda: controller.ledger.write(partial(put_providers, changes=once_more)), lambda: False)

    def drain(self, controller):
        """A host gives nothing more, for some time or for ever, or gives again."""
        if not self.model.hosts:
            return
        name, until = self.random.choice(sorted(self.model.hosts)), self.random.choice((None, None, 0, 1, 2))
        drained = {None: False, 0: True}.get(until, {"until": f"{(until or 0) * UNIT - UNIT // 2 + self.number}s"})
        self.said = ("drain", name, drained)
        changes = parse_changes([{"name": name, "drained": drained}], "providers[{}]")
        self.compare(lambda: controller.ledger.write(partial(put_providers, changes=changes)), lambda: self.model.drain(name, until))

    def finish(self, controller):
        """Some jobs end, in one transaction."""
        entries = [{"consumer": name, "allocations": {}} for name in sorted(self.random.sample(sorted(JOBS), 2))]
        self.said = ("finish", entries)
        claims = parse_claims(entries, "consumers[{}]")

        def release() -> bool:
            ended = [self.model.claim(entry["consumer"], None, None, False, {}) for entry in entries]
            return any(ended)

        self.compare(lambda: make_claims(controller.ledger, claims), release)

    def batch(self, controller):
        """Jobs get places in the order of the hosts' names: each that fits, or all or none."""
        names = self.random.sample(sorted(JOBS), self.random.randint(1, len(JOBS)))
        together = self.random.random() < 0.5
        self.said = ("batch", names, together)
        requests = [{"consumer": name, "request": {**REQUEST, "groups": {"": {"resources": {"VCPU": JOBS[name]}}}}} for name in names]
        try:
            done = place_batch(controller.ledger, parse_batch({**ALLOCATION, "requests": requests, "all_or_nothing": together}, {}))
        except NoSolution:
            done = None
        waiting = [name for name in names if self.model.find(name, None, None, False) is None]
        if together and not self.has_places(waiting):
            assert done is None, self.said
            self.count("refused")
            return
        uuids = {provider.uuid: provider.name for provider in controller.ledger.read(read_world).providers}
        got = {each["name"]: {uuids[host] for host in each["allocations"]} for each in done["placed"]}
        assert done["changed"] == any(name in waiting for name in got), self.said
        for name in waiting:
            fitting = [host for host in sorted(self.model.hosts) if self.model.free(host) >= JOBS[name]]
            if not together:
                assert got.get(name, set()) == set(fitting[:1]), self.said
            for host in got.get(name, ()):
                self.model.claim(name, None, None, False, {host: JOBS[name]})
        self.count("changed" if done["changed"] else "same")

    def has_places(self, names):
        """Return whether there is a way to place all, by trying every one."""
        for hosts in itertools.product(sorted(self.model.hosts), repeat=len(names)):
            asked = Counter()
            for name, host in zip(names, hosts):
                asked[host] += JOBS[name]
            if all(amount <= self.model.free(host) for host, amount in asked.items()):
                return True
        return False

    def sleep(self, controller):
        """A month passes."""
        self.model.sleep()
        pass_time(controller.ledger, UNIT)

    def limit(self, controller):
        """A project gets a quota, another one, or none."""
        project, most = self.random.choice(PROJECTS[1:]), self.random.choice((None, 3, 6, 9))
        self.said = ("limit", project, most)
        limits = {} if most is None else {"VCPU": most}
        done = controller.ledger.write(partial(put_quota, project=project, limits=limits))
        assert (done.before != done.after) == self.model.limit(project, most), self.said

    def reap(self, controller):
        """Claims that have ended are released, which changes nothing else; and the distant past is forgotten."""

        def work(connection):
            reap(connection)
            prune_history(connection, read_now(connection) - KEPT_MONTHS * UNIT + 1)

        controller.ledger.write(work)
        self.model.forget(KEPT_MONTHS)

    def claim(self, controller):
        hosts = self.random.sample(HOSTS, self.random.choice((1, 1, 1, 2)))
        self.make(controller, {host: self.random.randint(1, 4) for host in hosts})

    def release(self, controller):
        self.make(controller, {})

    def claim_seen(self, controller):
        """Claim of a host that was seen with the trait.

        One that was registered again with the trait is left out: whether it is the same depends on the numbers that a database gives.
        """
        if controller.candidates:
            seen, registered = self.random.choice(controller.candidates)
            host = self.model.hosts.get(seen.name)
            if registered == self.registered(seen.name) or host is None or not host.has_trait:
                self.make(controller, {seen.name: self.random.randint(1, 4)}, seen)

    def registered(self, name):
        """How often a host was registered."""
        return self.model.registered[name]

    def look(self, controller):
        controller.look(self)

    def make(self, controller, wanted, seen=None):
        owner = {"project": self.random.choice(PROJECTS), "user": self.random.choice(USERS), "take_over": self.random.random() < 0.15}
        name = self.random.choice(NAMES)
        entry = {"consumer": name, "allocations": {host: {"VCPU": amount} for host, amount in wanted.items()}, **owner}
        stale = False
        try:
            holder = self.model.find(name, owner["project"], owner["user"], owner["take_over"])
        except Refused:
            holder = None
        if holder is not None:
            key = (name, holder.project)
            stale = self.give_generation(entry, controller.consumers, key, self.present_consumer(key), "consumer_generation")
        lease = self.random.choice(LEASES) if wanted else None
        if lease is not None:
            entry["lease"] = f"{lease * UNIT - UNIT // 2 + self.number}s" if lease else "none"
        self.said = ("claim", entry, seen)
        (claim,) = parse_claims([{key: value for key, value in entry.items() if value is not None}], "consumers[{}]")

        until = {"lease": lease, "task": self.number}

        def told():
            before = copy.deepcopy((self.model.holders, self.model.past))
            changed = self.model.claim(**{**owner, "name": name}, wanted=wanted, seen_trait=[seen.name] if seen else (), **until)
            if stale and changed:
                self.model.holders, self.model.past = before
                raise Refused
            return changed

        if seen is None:
            self.compare(lambda: make_claims(controller.ledger, [claim]), told)
        else:
            tried = [replace(claim, seen=[seen])]
            self.compare(lambda: claim_first(controller.ledger, tried).claimed, told)

    def give_generation(self, entry, seen, key, present, option):
        """Give a generation that was seen, now and then; return whether it is not the present one."""
        if key not in seen or self.random.random() < 0.6:
            return False
        entry[option] = seen[key]
        return seen[key] != present

    def present_host(self, name):
        world = self.controllers[0].ledger.read(read_world)
        return next((provider.generation for provider in world.providers if provider.name == name), None)

    def present_consumer(self, key):
        consumers = self.controllers[0].ledger.read(read_consumers)
        return next((each.generation for each in consumers.values() if (each.name, each.project) == key), None)

    def watch(self, world, consumers):
        """No generation of a name is lower than one that was seen of it before."""
        present = {("host", each.name): each.generation for each in world.providers}
        present.update({("consumer", each.uuid): each.generation for each in consumers.values()})
        for key, generation in present.items():
            assert generation >= self.highest.get(key, 0), (key, generation, self.highest[key])
            self.highest[key] = generation

    def spans(self):
        """Yield what the ledger says of the past and of the present."""
        now, found = self.controllers[0].ledger.read(
            lambda connection: (read_now(connection), read_history(connection, Asked(), read_now(connection), 10**6))
        )
        for span in found:
            months = (None if at is None else self.model.month - (now - at) // UNIT for at in (span.began, span.ended))
            yield (span.project, span.user, span.provider_name, span.used, *months)

    def check(self):
        """Compare all there is."""
        ledger = self.controllers[0].ledger
        world, consumers, findings = ledger.read(lambda connection: (read_world(connection), read_consumers(connection), audit(connection)))
        self.watch(world, consumers)
        names = {provider.uuid: provider.name for provider in world.providers}
        hosts = {each.name: (each.inventories["VCPU"].total, TRAIT in each.traits, each.drained is not None) for each in world.providers}
        told = {name: (host.total, host.has_trait, host.drained is not None) for name, host in self.model.hosts.items()}
        assert hosts == told, self.said
        held = {
            (each.name, each.project, each.user): {names[host]: parts["VCPU"] for host, parts in world.allocations[uuid].items()}
            for uuid, each in consumers.items()
        }
        assert held == {(each.name, each.project, each.user): each.held for each in self.model.holders}, self.said
        assert Counter(self.spans()) == self.model.history, self.said
        assert {finding.kind for finding in findings} <= {"overfull", "piece"}, findings
