# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consumers by short names."""

from __future__ import annotations

import uuid


def consumer(name: object) -> str:
    """Return the UUID that stands for a consumer of this name in tests."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, str(name)))
