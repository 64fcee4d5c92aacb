# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Templates of pages: a room's own, and what the pages of all rooms share."""

from __future__ import annotations

import base64
import functools
import hashlib
import pathlib
import typing as t

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...module_utils._data.words import visible_lines

SHARED = pathlib.Path(__file__).parent / "templates"


@functools.cache
def page_templates(folder: pathlib.Path) -> Environment:
    """Return the templates of a folder, which may include shared ones.

    What they print is escaped, what nobody would see is marked, what is missing is an error.
    """
    return Environment(
        finalize=_finalized,
        loader=FileSystemLoader([folder, SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalized(value: t.Any) -> t.Any:
    return visible_lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def script_digest(script: str) -> str:
    """Return what a page's Content-Security-Policy calls its one script, so that a browser runs no other, whatever names it shows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
