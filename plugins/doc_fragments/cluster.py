# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all modules that work on groups of nodes: where the cluster comes from."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `cluster`; plugin_utils/_group/arguments.py has the matching arguments."""

    DOCUMENTATION = r"""
options:
  cluster:
    description:
      - The cluster, written out. Sizes are MiB, or text with a unit such as V(64 GiB).
      - Exactly one of O(cluster) and O(source) is needed.
    type: dict
    suboptions:
      groups:
        description:
          - Sets of nodes that fail over to each other. Default is a single group V(default).
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the group.
            type: str
            required: true
          uuid:
            description: Identity of the group. Default is its name.
            type: str
          alloc_policy:
            description: Whether it takes new instances, earlier choices before later ones.
            type: str
            choices: [preferred, last_resort, unallocable]
            default: preferred
          tags:
            description: Tags of the group.
            type: list
            elements: str
            default: []
          networks:
            description: Networks that the group is connected to.
            type: list
            elements: str
            default: []
          ipolicy:
            description:
              - Sizes of instances that it takes, as Ganeti writes them, with the keys C(minmax) (a list of C(min) and C(max)), C(std),
                C(disk-templates), C(vcpu-ratio) and C(spindle-ratio). Default is the cluster's.
              - A size has the keys C(memory-size), C(cpu-count), C(disk-size), C(disk-count), C(nic-count) and C(spindle-use).
            type: dict
      nodes:
        description: The machines that carry instances.
        type: list
        elements: dict
        required: true
        suboptions:
          name:
            description: Name of the node.
            type: str
            required: true
          group:
            description: Name or UUID of its group. Needed when there are several.
            type: str
          total_memory:
            description: All memory of the machine.
            type: raw
            required: true
          node_memory:
            description: What the node itself uses.
            type: raw
            default: 0
          free_memory:
            description: What the node reports as free. Default is what its instances leave.
            type: raw
          total_disk:
            description: All its internal storage. Default is the sum of its internal pools.
            type: raw
          free_disk:
            description: The free part. Default is what its instances leave.
            type: raw
          total_cpus:
            description: Physical CPUs.
            type: float
            required: true
          node_cpus:
            description: CPUs that the node itself uses.
            type: int
            default: 1
          cpu_speed:
            description: Speed of its CPUs relative to the others'.
            type: float
            default: 1.0
          state:
            description:
              - V(up) takes instances. A V(drained) node works, but takes nothing new, and everything should leave it; what runs there is
                migrated live.
              - V(offline) is marked offline by an operator, who guarantees that it is off. Its instances are failed over.
              - V(unreachable) does not answer, and nobody has marked it offline. What ran there may still run, so that nothing leaves it,
                nothing comes to it, and no instance that has a role there is moved. It is a problem that says what to do.
              - Default is what O(cluster.nodes[].offline) and O(cluster.nodes[].drained) say, else V(up).
            type: str
            choices: [up, drained, offline, unreachable]
          offline:
            description: The same as V(offline) in O(cluster.nodes[].state).
            type: bool
            default: false
          drained:
            description: The same as V(drained) in O(cluster.nodes[].state).
            type: bool
            default: false
          master:
            description: Whether it is the cluster's master.
            type: bool
            default: false
          tags:
            description: Tags of the node.
            type: list
            elements: str
            default: []
          exclusive_storage:
            description: Whether its disks are given to instances as a whole.
            type: bool
            default: false
          spindles:
            description: Capacity for disk traffic; with exclusive storage the number of its disks.
            type: int
            default: 1
          free_spindles:
            description: With exclusive storage, disks that are not in use. Default is what its instances leave.
            type: int
          storage:
            description:
              - Storage pools that it has or reaches. A node that names none has one internal pool V(lvm), all its disk.
            type: list
            elements: dict
            default: []
            suboptions:
              type:
                description: Whether the pool lies in the node, or is reached by many.
                type: str
                choices: [internal, external]
                default: internal
              pool:
                description: Name of the pool.
                type: str
                required: true
              total:
                description: Size of the pool. No limit is kept where it is not known.
                type: raw
              free:
                description: The free part. Default is what the instances leave.
                type: raw
              content:
                description: The kinds of disks that it takes, in your words. Default is any.
                type: list
                elements: str
                default: []
      instances:
        description: The virtual machines that are there.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the instance.
            type: str
            required: true
          memory:
            description: Memory it is given.
            type: raw
            required: true
          disk:
            description: What it takes on one node. Default is the sum of its disks.
            type: raw
          disks:
            description:
              - Its disks, each with C(size), and C(spindles) where storage is exclusive. Default is one of the size of C(disk).
              - For M(bareon.allocator.group_balance) of storages a disk has a C(name), the C(storage) that it lies in with C(type) and
                C(pool), its C(content) where pools take only some, and in C(stays) why it cannot go elsewhere, if it cannot.
            type: list
            elements: dict
          vcpus:
            description: Virtual CPUs.
            type: int
            required: true
          status:
            description: What it does.
            type: str
            choices:
              - running
              - ERROR_up
              - ERROR_down
              - ERROR_nodedown
              - ERROR_nodeoffline
              - ERROR_wrongnode
              - ADMIN_down
              - ADMIN_offline
              - USER_down
            default: running
          auto_balance:
            description: Whether it may be moved without asking, and memory is kept for it on its secondary.
            type: bool
            default: true
          primary:
            description: Node it lives on. Instances that are yet to be placed have none.
            type: str
          secondary:
            description: Node that mirrors its disks.
            type: str
          disk_template:
            description: How its disks are kept. Default is V(drbd) with a secondary, V(ext) on an external pool, else V(plain).
            type: str
            choices: [diskless, file, sharedfile, plain, blockdev, drbd, rbd, ext, gluster]
          storage:
            description: Pool that its disks are in, with C(type) and C(pool). Default is the internal pool V(lvm).
            type: dict
          tags:
            description: Tags of the instance.
            type: list
            elements: str
            default: []
          spindle_use:
            description: Its share of disk traffic.
            type: int
            default: 1
          spindles:
            description: Disks that are its own where storage is exclusive.
            type: int
          forthcoming:
            description: Whether it is planned, but not there yet.
            type: bool
            default: false
          load:
            description: Measured load, with C(cpu), C(memory), C(disk) and C(net), each V(1.0) by default.
            type: dict
          networks:
            description: Networks that its group must be connected to.
            type: list
            elements: str
            default: []
          live:
            description: Whether it can be moved while it runs. One that cannot is stopped and started elsewhere, as containers are.
            type: bool
            default: true
          shares_cpus:
            description:
              - Whether a node may have fewer CPUs than it, as with containers. Other instances only go to nodes with as many CPUs as they
                have.
            type: bool
            default: false
          replicated:
            description:
              - Whether the nodes that it may go to have replicas of its disks, so that a move copies next to nothing. A V(pin) says which
                nodes these are.
            type: bool
            default: false
          stays:
            description: Why its disks keep it on its node, if its disk template is one that does. It is given as a reason.
            type: str
            default: ''
          sid:
            description: How commands of its source call it, such as V(vm:101), where that is not its name.
            type: str
            default: ''
          under_ha:
            description: Whether HA moves it, and is to be asked to.
            type: bool
            default: false
      tags:
        description: Tags of the cluster, among them those that steer exclusion, location and migration, as in the manual page of C(htools).
        type: list
        elements: str
        default: []
      ipolicy:
        description: Policy of the groups that have none.
        type: dict
      rules:
        description:
          - Where instances run. No plan breaks a strict rule, or makes worse what is broken, and balancing repairs broken ones first. Rules
            that are not strict are wishes, which count in the score.
          - Rules that cannot hold, or contradict each other, are a problem of their members, which stay where they are; all else is
            planned.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: What messages call it. Default is its type and its place in the list.
            type: str
          type:
            description:
              - V(affinity) wants its instances on one node, V(anti_affinity) on different nodes, V(pin) on any of O(cluster.rules[].nodes),
                and V(ignore) leaves each where it is, its mirror included. V(spread) wants equally many of them in each domain of
                O(cluster.rules[].over), but for a difference of O(cluster.rules[].max_skew).
            type: str
            choices: [affinity, anti_affinity, pin, ignore, spread]
            required: true
          instances:
            description: Names of the instances that it is about.
            type: list
            elements: str
            default: []
          tags:
            description: Instances with one of these tags belong to it, too, those that are yet to be placed among them.
            type: list
            elements: str
            default: []
          nodes:
            description: The nodes of a V(pin).
            type: list
            elements: str
            default: []
          hardware:
            description:
              - Of a V(pin), whether its instances cannot even be started elsewhere. Then other nodes hold no mirrors of them either, and
                count for nothing when their node fails.
            type: bool
            default: false
          strict:
            description:
              - Whether no plan may break it. A rule that is not strict is a wish, which is in nobody's way.
              - A wish of the type V(ignore) is about primaries alone, so that mirrors may be moved.
            type: bool
            default: true
          weight:
            description:
              - Of a rule that is not strict, what each instance costs that is not where the rule wants it, in exclusion tags in conflict.
                One of these is two points of the score; of a strict rule it is 100.
            type: float
            default: 1.0
          over:
            description:
              - The domains of a V(spread). V(node) is each node, V(group) each group, anything else what the tags of nodes begin with, such
                as V(rack:), so that nodes with the same tag are one domain.
              - Nodes and tags are counted within each group by itself. A domain counts while one of its nodes is up. A node without such a
                tag takes none of the instances.
            type: str
            default: node
          max_skew:
            description: By how many instances the fullest and the emptiest domain of a V(spread) may differ.
            type: int
            default: 1
          reason:
            description: The word by which instances that it keeps where they are count as left out.
            type: str
            default: rule
      manager:
        description: What runs the cluster. Commands and hints are in its words.
        type: str
        choices: [ganeti, proxmox, libvirt]
        default: ganeti
  source:
    description:
      - Where to read the cluster from.
      - Exactly one of O(cluster) and O(source) is needed.
    type: dict
    suboptions:
      type:
        description:
          - V(ganeti_text) is the text format of Ganeti's htools, as C(hbal -S) and C(hscan) write it. They write drained nodes as offline;
            what this collection writes has V(drained) in a column of its own, which they ignore.
          - V(iallocator) is the message that Ganeti sends to an allocator.
          - V(ganeti_rapi) is Ganeti's remote API, asked at O(source.url), or a directory with C(info.json), C(groups.json),
            C(nodes.json) and C(instances.json) that it answered before.
          - V(proxmox) is a Proxmox VE cluster, asked at O(source.url) by O(source.token_id) and O(source.token_secret), or by
            O(source.username) and O(source.password). Nothing is changed there; the role C(PVEAuditor) on C(/) is enough and needed
            (C(VM.Audit), C(Sys.Audit), C(Datastore.Audit)), since a server hides what a user may not see. Maintenance mode, HA rules and
            HA groups, the tags of ProxLB (C(plb_affinity_NAME), C(plb_anti_affinity_NAME), C(plb_ignore_NAME), C(plb_pin_NODE)), locks,
            devices, ISO images, storages and types of CPU say where guests may run. Templates are left out. There is no policy.
          - Instead of a server, O(source.path) is what C(pvesh get PATH --output-format json) prints, for C(/cluster/resources),
            C(/nodes/NODE/storage), C(/nodes/NODE/qemu/ID/config) and any other path that would be asked, as a directory with a file for
            each, such as C(nodes/pve1/storage.json), or one file that maps paths to what was printed.
          - V(libvirt) are the nodes of O(source.uris), asked by C(virsh) on the controller. Nothing is changed there. Devices, snapshots,
            images in drives, machine types, huge pages, CPUs, networks and pools say where guests may run. Storage pools of the types
            C(netfs), C(rbd), C(iscsi), C(iscsi-direct) and C(gluster), and those of O(source.shared_pools), are shared by the nodes that
            agree on their source and target. A guest has the tags, with spaces between them, that are the text of an element C(tags) in
            its metadata. A node that does not answer is V(unreachable). There is no policy.
          - V(ledger) is the database that M(bareon.allocator.provider) and M(bareon.allocator.provider_allocation) keep. A tree of
            providers with C(VCPU) or C(MEMORY_MB) is a node with the sums of its providers, named as its root; consumers are instances.
            What may be in use at once counts, the total less what is reserved, times the allocation ratio. Traits are the
            node's tags; with C(COMPUTE_STATUS_DISABLED) at its root a node is drained. Where a consumer has disk on two nodes, the one
            with its memory is the primary. A provider with the trait C(MISC_SHARES_VIA_AGGREGATE) is an external storage pool.
        type: str
        choices: [ganeti_text, iallocator, ganeti_rapi, proxmox, libvirt, ledger]
        required: true
      path:
        description: File or directory on the controller, relative to the playbook.
        type: path
      url:
        description:
          - Address of the server, such as V(https://cluster.example.com:5080).
          - Of a source of type V(proxmox) any node, such as V(https://pve1.example.com:8006); default is E(PROXMOX_URL).
        type: str
      username:
        description: User to ask as.
        type: str
      password:
        description: Password of that user.
        type: str
      validate_certs:
        description: Whether the server's certificate must be valid.
        type: bool
        default: true
      timeout:
        description:
          - Seconds that each answer of the server may take, from the first name that is looked up to its last byte.
        type: float
        default: 60.0
      database:
        description:
          - Of a source of type V(ledger) the database, as the URL that SQLAlchemy takes, such as V(sqlite:////var/lib/bareon.sqlite).
          - Default is the environment variable E(BAREON_DATABASE) on the controller, else the SQLite file
            C(bareon/providers.sqlite) in E(XDG_DATA_HOME), which is C(~/.local/share) when it is not set.
        type: str
      aggregates:
        description:
          - Of a source of type V(ledger) the groups, by name, each with the name or the UUID of the aggregate that its nodes' root
            providers are in.
          - A node may be in one of them only. Those in none are the group V(default), as are all when this is not given.
        type: dict
      token_id:
        description:
          - Of a source of type V(proxmox) the token, such as V(planner@pve!bareon), or its name alone together with O(source.username).
          - Default is E(PROXMOX_TOKEN_ID). Users and passwords have E(PROXMOX_USER) and E(PROXMOX_PASSWORD).
        type: str
      token_secret:
        description: Secret of the token. Default is E(PROXMOX_TOKEN_SECRET).
        type: str
      ca_path:
        description:
          - Of a source of type V(proxmox) a file with the authority that has signed its certificate, such as a copy of
            C(/etc/pve/pve-root-ca.pem). Default is E(PROXMOX_CA_PATH), else the authorities that the controller trusts.
        type: path
      load:
        description: Of a source of type V(proxmox), what the load of a guest is. Without it no load is measured.
        type: dict
        suboptions:
          window:
            description: Over what time it is averaged.
            type: str
            choices: [hour, day, week, month]
            default: hour
          mode:
            description:
              - V(used) is what guests were measured to use (cores, GiB, MiB a second), V(assigned) what they may use of CPU and memory.
              - V(pressure) is the share of time in which they had to wait (PSI), which Proxmox VE measures since release 9.
            type: str
            choices: [used, assigned, pressure]
            default: used
          percentile:
            description:
              - Which percentile of what was measured counts, instead of the mean, such as V(95) of a C(week), so that guests which are busy
                at some hours of the day are not taken for idle ones. Proxmox VE keeps means of half an hour of a week.
            type: float
      local_disks:
        description:
          - Of a source of type V(proxmox) or V(libvirt), whether guests with local disks may be moved, which copies the disks to a storage
            of the same name. What is copied has its price. Otherwise they stay where they are.
          - libvirt copies disks of guests that run and have no shared disks; give the role C(--copy-storage-all) in
            C(group_moves_virsh_options).
        type: bool
        default: false
      uris:
        description:
          - Of a source of type V(libvirt) the URI of each node by its name, such as V(qemu+ssh://kvm1/system). C(virsh) asks at no
            terminal, so that keys must be there.
        type: dict
      shared_pools:
        description:
          - Of a source of type V(libvirt) the names of storage pools that are the same on all nodes, although their type does not say so,
            such as a C(dir) on CephFS.
        type: list
        elements: str
      memory:
        description:
          - Of a source of type V(proxmox), what the memory of a guest that runs is. Default is V(maximum), the most that it may have.
          - V(balloon) is what it keeps when memory is short, of machines that have a minimum. V(used) is what it takes now. Both let
            nodes be filled beyond what guests may ask for one day, and are for clusters that are overcommitted already.
        type: str
        choices: [maximum, balloon, used]
requirements:
  - numpy >= 1.26 on the controller
  - highspy 1.16 on the controller
  - proxmoxer >= 2.2 and requests >= 2.31 on the controller, for a source of type V(proxmox) with O(source.url)
  - C(virsh) on the controller, for a source of type V(libvirt)
  - for a source of type V(ledger), what M(bareon.allocator.provider) needs
"""

    LINK = r"""
options:
  link_rate:
    description:
      - What the link of a node takes a second in each direction, such as V(110 MiB) for 1 Gbit/s, by which the time of a plan is estimated.
        Without it there is no estimate, unless O(link_journals) or O(link_ledger) has one.
      - Take what your network gives to migrations. A live migration sends the memory of an instance once or more, a copy its disk. Moves
        of a stage run side by side, and those that touch a node share its link.
    type: raw
  link_journals:
    description:
      - A journal of the role P(bareon.allocator.group_moves#role), or the folder of its journals, C(group_moves_journals), on the
        controller. The rate of the links is then the median of what they took in rounds of earlier plans, in place of O(link_rate).
      - Only rounds of a minute or more count, since in shorter ones most of the time goes into beginning and awaiting the moves. As long as
        there is none, or no journal yet, O(link_rate) holds. A file in the folder that ends in C(.json) and is no journal is left out, and
        named in the summary.
      - Take the journals of one cluster, as those of another say nothing about its links. Of more than 100 the newest 100 are read.
    type: path
  link_ledger:
    description:
      - The journals that the role keeps in the database of a ledger, with C(group_moves_state=ledger), read as those in files by
        O(link_journals). With both, the rounds of both count.
    type: dict
    suboptions:
      state_name:
        description: The name of the state, C(group_moves_state_name).
        type: str
        required: true
      database:
        description:
          - The database of the ledger, as in M(bareon.allocator.provider). Default is the environment variable E(BAREON_DATABASE).
        type: str
"""

    TURNS = r"""
options:
  move_first:
    description:
      - The instances that are moved before all others, each by any of the keys. When nodes are emptied they are the first to leave, and to
        choose their places; when groups are balanced they are rather moved than others, as their moves have no price.
    type: dict
    suboptions:
      instances:
        description: Names of instances.
        type: list
        elements: str
      tags:
        description: Instances with one of these tags.
        type: list
        elements: str
      pools:
        description: Instances with a disk in one of these storage pools.
        type: list
        elements: str
  move_last:
    description:
      - The instances that are moved after all others, and in balancing only where much is gained, as their moves have thirty times the
        price. Moves of other instances that have no room before come after them.
    type: dict
    suboptions:
      instances:
        description: Names of instances.
        type: list
        elements: str
      tags:
        description: Instances with one of these tags.
        type: list
        elements: str
      pools:
        description: Instances with a disk in one of these storage pools.
        type: list
        elements: str
"""

    ONLY = r"""
options:
  only:
    description:
      - The instances that may move, each by any of the keys. All others keep their nodes, their mirrors and the storages of their disks, as
        under a rule of the type C(ignore), and count as V(only) in RV(ignore:left_out). Default is all instances.
      - A word that selects no instance is a mistake.
    type: dict
    suboptions:
      instances:
        description: Names of instances.
        type: list
        elements: str
      tags:
        description: Instances with one of these tags.
        type: list
        elements: str
      pools:
        description: Instances with a disk in one of these storage pools.
        type: list
        elements: str
"""
