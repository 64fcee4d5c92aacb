# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/schemas/*.json from the tables that inputs are read with, or with --check say whether they are what this would write.

Run with the collection on the path: PYTHONPATH=.venv/collections .venv/bin/python tests/support/json_schemas.py
"""

from __future__ import annotations

import json
import pathlib
import sys

from ansible_collections.bareon.allocator.plugins.module_utils._data.containers import MappingOf, Row, Table
from ansible_collections.bareon.allocator.plugins.module_utils._data.kinds import Text
from ansible_collections.bareon.allocator.plugins.module_utils._schema.table import STATIC
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.eligible import ELIGIBLE
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.values import SPACES
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import CLUSTER
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import WORLD

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PROFILE = Table(
    "a profile",
    [
        Row("description", Text(), "What kind of machine it is for."),
        Row("why", MappingOf(Text(), "remarks by the id of the space"), "Why spaces are as they are, by their ids."),
        Row("idle", Text(), "What to do with disks on which it puts nothing."),
        Row("eligible", ELIGIBLE, "Kinds of disks to use that plans leave alone otherwise."),
        Row("schema", SPACES, "The spaces.", required=True),
    ],
    others=True,
)


def schemas():
    """Return the JSON Schemas by the names of their files."""
    spaces = SPACES.json_schema()
    profile = {"if": {"type": "array"}, "then": spaces, "else": PROFILE.json_schema()}
    return {
        "dynamic-schema.json": titled("A dynamic schema of bareon.allocator.disk_plan", spaces),
        "profile.json": titled("A profile of bareon.allocator.disk_plan", profile),
        "static-schema.json": titled("A static schema of bareon.allocator.disk_layout", STATIC.json_schema()),
        "cluster.json": titled("An inline cluster of the group modules of bareon.allocator", CLUSTER.json_schema()),
        "world.json": titled("A world of the provider modules of bareon.allocator", WORLD.json_schema()),
    }


def titled(title, schema):
    return {"$schema": DIALECT, "title": title} | schema


def texts():
    """Return what the files hold, by their names: a line for each value, so that changes can be read, and no indents to be downloaded."""
    return {name: json.dumps(schema, indent=0, ensure_ascii=False) + "\n" for name, schema in schemas().items()}


def stale():
    """Return the names of files that are not what this would write, and of those that it would not."""
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    wanted = texts()
    return sorted(name for name in {*there, *wanted} if there.get(name) != wanted.get(name))


def main():
    if "--check" in sys.argv[1:]:
        names = stale()
        if names:
            print(f"docs/schemas: {', '.join(names)} are not what the tables say; run make schemas", file=sys.stderr)
        return 1 if names else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
