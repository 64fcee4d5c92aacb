# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all modules that balance groups by score and price."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `balancing`; BALANCING_ARGUMENTS of plugin_utils/_group/arguments.py are the matching arguments."""

    DOCUMENTATION = r"""
options:
  max_data:
    description: How much a group's plan may copy, in MiB or as a size such as C(500 GiB). Default is as much as is worth its price.
    type: str
  min_gain:
    description: The least by which each move must lower the score, at any score. Default is V(0.0001).
    type: float
  data_price:
    description: What copying a TiB costs, in points of the score. Default is V(0.04).
    type: float
  move_price:
    description: What moving a primary to another node costs, in points of the score. Default is V(0.001).
    type: float
  restart_price:
    description:
      - What it costs instead if the instance runs and cannot be moved live, such as a container, which is stopped and started again.
        Default is V(0.01).
    type: float
  disk_moves:
    description: Whether moves may copy disks. Without them instances only go to their secondary, or to any node on shared storage.
    type: bool
    default: true
  instance_moves:
    description: Whether moves may change the primary. Without them only secondaries are replaced.
    type: bool
    default: true
  redundancy:
    description:
      - The importance of N+1 on shared storage, which means that the instances of a failed node can restart on other nodes.
      - With V(price) it only gets worse to start instances whose node is marked offline, to repair broken limits, or to empty nodes;
        RV(bareon.allocator.group_balance#module:groups[].redundancy) says where, by how much, and for what. With V(keep) it never gets
        worse. With V(off) it is ignored. Default is V(price).
    type: str
    choices: [keep, price, 'off']
  load:
    description:
      - The measured load of instances by name, as mappings of C(cpu), C(memory), C(disk) and C(net), in the same units for all
        instances. A key that is missing in a mapping counts as 0; an instance that is missing keeps its load from the cluster.
    type: dict
  node_load:
    description:
      - The same for nodes. The part that was not measured for single instances is divided among the other primaries of the node, CPU by
        virtual CPUs, memory by memory, disk by disk, and network evenly.
    type: dict
  prometheus:
    description:
      - A Prometheus server that is asked for the load of instances, by one or more of C(cpu), C(memory), C(disk) and C(net). Each is a
        query in PromQL that gives an instant vector with one sample for each instance, in units that are the same for all instances.
      - Percentiles over a window are up to the query, such as C(quantile_over_time(0.95, vm_cpu[7d])).
      - An instance that none of the queries names keeps its load from the cluster; O(load) and O(node_load) come after it.
    type: dict
    suboptions:
      url:
        description: Address of the server, such as V(http://prometheus.example.com:9090), with the path before C(/api/v1) if there is one.
        type: str
        required: true
      cpu:
        description: The query for the load of CPUs.
        type: str
      memory:
        description: The query for memory.
        type: str
      disk:
        description: The query for disk traffic.
        type: str
      net:
        description: The query for network traffic.
        type: str
      label:
        description: The label that holds the name of an instance.
        type: str
        default: instance
      username:
        description: User to ask as, by basic authentication.
        type: str
      password:
        description: Password of that user.
        type: str
      validate_certs:
        description: Whether the server's certificate must be valid.
        type: bool
        default: true
      timeout:
        description: Seconds that each answer may take.
        type: float
        default: 60.0
  max_moves_at_node:
    description: How many moves of a stage may touch a node. Default is as many as have room.
    type: int
  time_limit:
    description: Seconds after which the search of a group ends with the best plan so far. Default is to search to the end.
    type: float
"""
