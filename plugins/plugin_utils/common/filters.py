# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What filters share: their one call, its mistakes as Ansible's error, its warnings as Ansible's."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Sequence

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from .errors import InputError
from .libraries import MissingLibraries


def answer(name: str, call: Callable[[], tuple[t.Any, Sequence[str]]]) -> t.Any:
    """Return the value of a call that gives a value and warnings, which are shown. Raises AnsibleFilterError with all that is wrong."""
    try:
        value, warnings = call()
    except (InputError, MissingLibraries, TypeError) as error:
        raise AnsibleFilterError(f"{name}: {error}") from error
    for warning in warnings:
        Display().warning(f"{name}: {warning}")
    return value
