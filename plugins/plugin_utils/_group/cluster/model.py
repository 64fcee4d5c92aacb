# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of group planning: groups, nodes, instances, policies and storage pools. Sizes are MiB.

Sources make a `Cluster`; `state.ClusterState.from_cluster` turns it into arrays. Things refer to each other by name;
their order in the tuples is what ties are broken by, as in Ganeti's htools, whose data model this is. Storage pools
per node and instance follow the "Shared storage support" part of Ganeti's design for htools 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class DiskTemplate(StrEnum):
    """How an instance's disks are kept."""

    DISKLESS = "diskless"
    FILE = "file"
    SHAREDFILE = "sharedfile"
    PLAIN = "plain"
    BLOCKDEV = "blockdev"
    DRBD = "drbd"
    RBD = "rbd"
    EXT = "ext"
    GLUSTER = "gluster"


MIRRORED_OUTSIDE = frozenset(DiskTemplate) - {DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.FILE}
"""Templates whose data every node that reaches the pool can use."""
ON_NODE_DISK = frozenset({DiskTemplate.DRBD, DiskTemplate.PLAIN})
"""Templates that take the node's own disk and spindles; `file` is left out, as htools does."""
MOVABLE = frozenset({DiskTemplate.DRBD}) | (MIRRORED_OUTSIDE - {DiskTemplate.DISKLESS})
"""Templates that balancing may move."""


class Status(StrEnum):
    """What an instance does, in Ganeti's words."""

    RUNNING = "running"
    ERROR_UP = "ERROR_up"
    ERROR_DOWN = "ERROR_down"
    ERROR_NODE_DOWN = "ERROR_nodedown"
    ERROR_NODE_OFFLINE = "ERROR_nodeoffline"
    ERROR_WRONG_NODE = "ERROR_wrongnode"
    ADMIN_DOWN = "ADMIN_down"
    ADMIN_OFFLINE = "ADMIN_offline"
    USER_DOWN = "USER_down"


RUNS = frozenset({Status.RUNNING, Status.ERROR_UP, Status.ERROR_WRONG_NODE})
"""Of instances that can be migrated without being stopped."""
USES_MEMORY = frozenset(
    {Status.RUNNING, Status.ERROR_UP, Status.ERROR_NODE_DOWN, Status.ERROR_NODE_OFFLINE, Status.ERROR_WRONG_NODE},
)


class AllocPolicy(StrEnum):
    """Whether a group takes new instances; earlier members are preferred to later ones."""

    PREFERRED = "preferred"
    LAST_RESORT = "last_resort"
    UNALLOCABLE = "unallocable"


class NodeState(StrEnum):
    """Whether a node takes instances, and whether it answers."""

    UP = "up"
    DRAINED = "drained"
    """It works, but takes nothing new, and all is to leave it: its instances run, and its disks can be read."""
    OFFLINE = "offline"
    """Marked offline by the cluster's operators, who guarantee that its instances are down."""
    UNREACHABLE = "unreachable"
    """It does not answer, and nobody has marked it offline: what ran there may run on, so that nothing leaves it or comes to it."""


class Manager(StrEnum):
    """What runs a cluster, whose words its operators use."""

    GANETI = "ganeti"
    PROXMOX = "proxmox"
    LIBVIRT = "libvirt"


class PoolKind(StrEnum):
    """Whether a storage pool lies inside the node or is reached by many."""

    INTERNAL = "internal"
    EXTERNAL = "external"


@dataclass(frozen=True, order=True)
class PoolName:
    """A storage pool's identity: pools of different kinds may share a name."""

    kind: PoolKind
    pool: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.pool}"


NODE_DISK = PoolName(PoolKind.INTERNAL, "lvm")
"""The pool that local instances use when they name none, and that a node's disk is when it names no pools."""


@dataclass(frozen=True)
class StoragePool:
    """A pool that a node has or reaches; `total` and `free` in MiB, None where unknown (no limit is then kept).

    `content` are the kinds of disks that it takes, in whatever words their source has for them; empty for any.
    """

    name: PoolName
    total: int | None = None
    free: int | None = None
    content: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """One corner of a policy interval."""

    memory: int
    cpus: int
    disk_size: int
    disk_count: int
    nics: int
    spindle_use: int


@dataclass(frozen=True)
class SpecInterval:
    """The sizes that a policy allows, both ends included."""

    minimum: Spec
    maximum: Spec


DEFAULT_MINIMUM = Spec(memory=128, cpus=1, disk_size=1024, disk_count=1, nics=1, spindle_use=1)
DEFAULT_MAXIMUM = Spec(memory=32768, cpus=8, disk_size=1048576, disk_count=16, nics=8, spindle_use=12)


@dataclass(frozen=True)
class Policy:
    """What instances a group takes; an instance must lie in any one interval. The defaults are htools' own."""

    intervals: tuple[SpecInterval, ...] = (SpecInterval(DEFAULT_MINIMUM, DEFAULT_MAXIMUM),)
    standard: Spec = DEFAULT_MINIMUM
    disk_templates: tuple[DiskTemplate, ...] = tuple(DiskTemplate)
    vcpu_ratio: float = 4.0
    spindle_ratio: float = 32.0


_ANY_AMOUNT = 2**40
"""More than any node has; sums with it stay exact."""
NO_POLICY = Policy(
    intervals=(SpecInterval(Spec(0, 0, 0, 0, 0, 0), Spec(*[_ANY_AMOUNT] * 6)),),
    vcpu_ratio=float(_ANY_AMOUNT),
    spindle_ratio=float(_ANY_AMOUNT),
)
"""Of clusters that have none: what fits is allowed."""


class RuleKind(StrEnum):
    """What a rule says of where instances run."""

    AFFINITY = "affinity"
    """All on one node."""
    ANTI_AFFINITY = "anti_affinity"
    """All on different nodes."""
    PIN = "pin"
    """Only on some nodes."""
    IGNORE = "ignore"
    """They stay where they are: no step is planned for them or their mirrors."""
    SPREAD = "spread"
    """Equally many in each domain, but for a difference of `max_skew`."""


OVER_NODES, OVER_GROUPS = "node", "group"
"""Domains of a spread, other than nodes with the same tag."""


@dataclass(frozen=True)
class Rule:
    """A limit on where instances run, with what it is called, of those that it names or that have one of its tags; `nodes` are a pin's.

    `reason` is the word under which instances that it keeps where they are count as left out. A `hardware` pin is one that no operator can
    lift: elsewhere its instances do not start, so that they are no mirrors there, and restart nowhere else when their node fails.

    A rule that is not `strict` is a wish: it adds `weight` to the score for each instance that is not where it wants it, in exclusion
    tags in conflict, and is in nobody's way. Of a spread, `over` says what the domains are: OVER_NODES, OVER_GROUPS, or a prefix of node
    tags; nodes and tags count within each group by itself.
    """

    name: str
    kind: RuleKind
    instances: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    reason: str = "rule"
    hardware: bool = False
    strict: bool = True
    weight: float = 1.0
    over: str = OVER_NODES
    max_skew: int = 1


@dataclass(frozen=True)
class Tolerance:
    """What may fail at once: that many nodes of a group, that part of its memory, or nodes with the same tag; one of them is given."""

    nodes: int = 1
    percent: float = 0.0
    domain: str = ""


@dataclass(frozen=True)
class Group:
    """A set of nodes that fail over to each other."""

    name: str
    uuid: str
    alloc_policy: AllocPolicy = AllocPolicy.PREFERRED
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class Node:
    """A machine that carries instances.

    `node_memory` and `node_cpus` are what the node itself uses, `free_memory` what it reports. `total_disk` is all its
    internal storage, `storage` how that is divided, and what it reaches outside. `spindles` is the I/O capacity, or with
    `exclusive_storage` the number of physical spindles, of which `free_spindles` are unused.
    """

    name: str
    group: str
    total_memory: float
    node_memory: int
    free_memory: int
    total_disk: float
    free_disk: int
    total_cpus: float
    node_cpus: int = 1
    cpu_speed: float = 1.0
    offline: bool = False
    drained: bool = False
    unreachable: bool = False
    master: bool = False
    tags: tuple[str, ...] = ()
    exclusive_storage: bool = False
    spindles: int = 1
    free_spindles: int = 0
    storage: tuple[StoragePool, ...] = ()

    @property
    def state(self) -> NodeState:
        """Whether it takes instances, and whether it answers."""
        if self.offline:
            return NodeState.OFFLINE
        if self.unreachable:
            return NodeState.UNREACHABLE
        return NodeState.DRAINED if self.drained else NodeState.UP


@dataclass(frozen=True)
class Disk:
    """One disk of an instance; `spindles` only counts on nodes with exclusive storage, None is unknown.

    `storage` is the pool that it lies in, None where only the instance's is known; `content` what kind of disk it is; `stays` why it
    cannot go to another pool, empty where it can.
    """

    size: int
    spindles: int | None = None
    name: str = ""
    storage: PoolName | None = None
    content: str = ""
    stays: str = ""


class Turn(IntEnum):
    """Which instances rather move than others, and before them."""

    FIRST = 0
    USUAL = 1
    LAST = 2


@dataclass(frozen=True)
class Load:
    """What an instance is measured to use, in any unit that is the same for all instances."""

    cpu: float = 1.0
    memory: float = 1.0
    disk: float = 1.0
    net: float = 1.0


USUAL_LOAD = Load()
"""Of instances whose load nobody has measured; all of them share it."""


@dataclass(frozen=True)
class Instance:
    """A virtual machine. `primary` is empty for one that is not placed yet; `secondary` is only used by drbd.

    `disk` is what it takes on one node. `storage` None means the node's own disk for local templates, and for the
    others a pool that every node of the group reaches. `networks` are those a group must be connected to.
    """

    name: str
    memory: int
    disk: int
    vcpus: int
    primary: str = ""
    secondary: str = ""
    status: Status = Status.RUNNING
    auto_balance: bool = True
    disk_template: DiskTemplate = DiskTemplate.DRBD
    disks: tuple[Disk, ...] = ()
    storage: PoolName | None = None
    tags: tuple[str, ...] = ()
    spindle_use: int = 1
    forthcoming: bool = False
    load: Load = USUAL_LOAD
    networks: tuple[str, ...] = ()
    live: bool = True
    """Whether it can be moved while it runs; one that cannot is stopped, and started elsewhere, as containers are."""
    shares_cpus: bool = False
    """Whether a node may have fewer CPUs than it has virtual ones, as with containers; a virtual machine does not start there."""
    replicated: bool = False
    """Whether the nodes that it may go to have a replica of its disks, so that next to nothing is copied."""
    stays: str = ""
    """Why its disks keep it on its node, in the words of its source; empty where its disk template says enough."""
    sid: str = ""
    """How commands of its source call it, such as `vm:101`; empty where that is its name."""
    under_ha: bool = False
    """Whether HA moves it, and is to be asked to."""
    turn: Turn = Turn.USUAL

    @property
    def runs(self) -> bool:
        """Whether it runs, if its node answers."""
        return self.status in RUNS and not self.forthcoming

    @property
    def uses_memory(self) -> bool:
        """Whether its memory is taken on its primary."""
        return self.status in USES_MEMORY and not self.forthcoming

    @property
    def uses_cpus(self) -> bool:
        """Whether its CPUs are taken on its primary."""
        return self.status != Status.ADMIN_OFFLINE

    @property
    def reserves_memory(self) -> bool:
        """Whether its secondary keeps memory for it; a stopped one counts, since it may be started there."""
        return self.uses_cpus and self.auto_balance

    @property
    def on_node_disk(self) -> bool:
        """Whether it takes the node's own disk and spindles."""
        return self.disk_template in ON_NODE_DISK

    @property
    def takes_disk_along(self) -> bool:
        """Whether its disks lie within its only node, and are copied when it moves."""
        return self.disk_template in MIRRORED_OUTSIDE and self.storage is not None and self.storage.kind is PoolKind.INTERNAL

    @property
    def movable(self) -> bool:
        """Whether balancing may move it."""
        return self.disk_template in MOVABLE

    @property
    def why_it_stays(self) -> str:
        """Why it cannot be moved, if it cannot."""
        return self.stays or f"disks of template {self.disk_template} cannot be moved to another node"

    @property
    def spindles(self) -> int | None:
        """Physical spindles of all its disks; None when any is unknown."""
        total = 0
        for disk in self.disks:
            if disk.spindles is None:
                return None
            total += disk.spindles
        return total


@dataclass(frozen=True)
class Cluster:
    """All that is known; every name in it refers to something in it (sources see to that)."""

    groups: tuple[Group, ...]
    nodes: tuple[Node, ...]
    instances: tuple[Instance, ...]
    tags: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    rules: tuple[Rule, ...] = ()
    manager: Manager = Manager.GANETI
    tolerate: Tolerance | None = None
    """What may fail at once beyond a node."""
    link_rate: float | None = None
    """The MiB that a link of a node takes a second in either direction; None where nothing is to be estimated."""
    link_rounds: int = 0
    """The number of rounds of earlier plans that the rate was measured in; 0 where it was given."""
    link_notes: tuple[str, ...] = ()
    """A sentence on each journal of an earlier plan that cannot be read."""
    more_cpus_than_node: bool = False
    """Whether an instance may have more virtual CPUs than its node has CPUs, as htools let it."""

    def group_positions(self) -> dict[str, int]:
        """Return the position of each group by name."""
        return {group.name: position for position, group in enumerate(self.groups)}

    def node_positions(self) -> dict[str, int]:
        """Return the position of each node by name."""
        return {node.name: position for position, node in enumerate(self.nodes)}

    def instance_positions(self) -> dict[str, int]:
        """Return the position of each instance by name."""
        return {instance.name: position for position, instance in enumerate(self.instances)}
