# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that every action of the room has, documented once in the fragment `cluster`. Imports nothing of the room."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from enum import StrEnum


class SourceType(StrEnum):
    """What a source is."""

    GANETI_TEXT = "ganeti_text"
    IALLOCATOR = "iallocator"
    GANETI_RAPI = "ganeti_rapi"
    PROXMOX = "proxmox"
    LIBVIRT = "libvirt"
    LEDGER = "ledger"
    """Read by plugin_utils/_bridge, since rooms do not know each other."""


CLUSTER_ARGUMENTS: Mapping[str, t.Any] = {
    "cluster": {"type": "dict"},
    "source": {
        "type": "dict",
        "options": {
            "type": {"type": "str", "required": True, "choices": [str(kind) for kind in SourceType]},
            "path": {"type": "path"},
            "url": {"type": "str"},
            "username": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "validate_certs": {"type": "bool", "default": True},
            "timeout": {"type": "float", "default": 60.0},
            "database": {"type": "str"},
            "aggregates": {"type": "dict"},
            "token_id": {"type": "str"},
            "token_secret": {"type": "str", "no_log": True},
            "ca_path": {"type": "path"},
            "load": {
                "type": "dict",
                "options": {
                    "window": {"type": "str", "choices": ["hour", "day", "week", "month"], "default": "hour"},
                    "mode": {"type": "str", "choices": ["used", "assigned", "pressure"], "default": "used"},
                    "percentile": {"type": "float"},
                },
            },
            "local_disks": {"type": "bool", "default": False},
            "uris": {"type": "dict"},
            "shared_pools": {"type": "list", "elements": "str"},
            "memory": {"type": "str", "choices": ["maximum", "balloon", "used"]},
        },
        "mutually_exclusive": [("path", "url")],
        "required_by": {"password": ["username"]},
    },
}
CLUSTER_CONSTRAINTS: Mapping[str, t.Any] = {
    "mutually_exclusive": [("cluster", "source")],
    "required_one_of": [("cluster", "source")],
}
SCORE_ARGUMENTS: Mapping[str, t.Any] = {"score": {"type": "str", "choices": ["htools", "capacity"], "default": "htools"}}
_SELECTION: Mapping[str, t.Any] = {
    "type": "dict",
    "options": {key: {"type": "list", "elements": "str"} for key in ("instances", "tags", "pools")},
}
ONLY_ARGUMENTS: Mapping[str, t.Any] = {"only": _SELECTION}
TURN_ARGUMENTS: Mapping[str, t.Any] = {"move_first": _SELECTION, "move_last": _SELECTION}
TOLERANCE_ARGUMENTS: Mapping[str, t.Any] = {
    "tolerate": {
        "type": "dict",
        "options": {"nodes": {"type": "int"}, "percent": {"type": "float"}, "domain": {"type": "str"}},
        "mutually_exclusive": [("nodes", "percent", "domain")],
        "required_one_of": [("nodes", "percent", "domain")],
    },
}
LINK_ARGUMENTS: Mapping[str, t.Any] = {
    "link_rate": {"type": "raw"},
    "link_journals": {"type": "path"},
    "link_ledger": {"type": "dict", "options": {"state_name": {"type": "str", "required": True}, "database": {"type": "str"}}},
}
PARALLEL_ARGUMENTS: Mapping[str, t.Any] = {
    "workers": {"type": "int", "default": 0},
    "scheduler": {"type": "str"},
    "insecure": {"type": "bool", "default": False},
}
BALANCING_ARGUMENTS: Mapping[str, t.Any] = {
    "max_data": {"type": "str"},
    "min_gain": {"type": "float"},
    "data_price": {"type": "float"},
    "move_price": {"type": "float"},
    "restart_price": {"type": "float"},
    "disk_moves": {"type": "bool", "default": True},
    "instance_moves": {"type": "bool", "default": True},
    "redundancy": {"type": "str", "choices": ["keep", "price", "off"]},
    "load": {"type": "dict"},
    "node_load": {"type": "dict"},
    "prometheus": {
        "type": "dict",
        "options": {
            "url": {"type": "str", "required": True},
            **{kind: {"type": "str"} for kind in ("cpu", "memory", "disk", "net")},
            "label": {"type": "str", "default": "instance"},
            "username": {"type": "str"},
            "password": {"type": "str", "no_log": True},
            "validate_certs": {"type": "bool", "default": True},
            "timeout": {"type": "float", "default": 60.0},
        },
        "required_by": {"password": ["username"]},
        "required_one_of": [("cpu", "memory", "disk", "net")],
    },
    "max_moves_at_node": {"type": "int"},
    "time_limit": {"type": "float"},
}
