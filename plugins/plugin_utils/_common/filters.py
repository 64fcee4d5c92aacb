# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What filters share: plain data in, mistakes as Ansible's error, warnings as Ansible's."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Callable, Mapping, Sequence

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ...module_utils._data.errors import InputError
from .libraries import MissingLibraries
from .plain import plain_input

Answer = tuple[t.Any, Sequence[str]]
"""A value, and warnings."""

MISREAD = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What reading something as a plan or a static schema raises when it is none."""


def texts_of(present: t.Any) -> dict[str, str]:
    """Return the texts of files by their paths; none for None. Raises AnsibleFilterError."""
    if present is None:
        return {}
    if not isinstance(present, Mapping) or not all(isinstance(text, str) for text in present.values()):
        raise AnsibleFilterError("present must be the texts of files by their paths, such as {/etc/fstab: TEXT}")
    return {str(path): str(text) for path, text in present.items()}


def plain_filter(call: Callable[..., Answer]) -> Callable[..., t.Any]:
    """Return a filter that gives the value and shows the warnings of a call, which takes plain data.

    The filter raises AnsibleFilterError with all that is wrong.
    """

    @functools.wraps(call)
    def filtered(*given: t.Any, **options: t.Any) -> t.Any:
        try:
            value, warnings = call(*map(plain_input, given), **plain_input(options))
        except (InputError, MissingLibraries, TypeError) as error:
            raise AnsibleFilterError(f"{call.__name__}: {error}") from error
        for warning in warnings:
            Display().warning(f"{call.__name__}: {warning}")
        return value

    return filtered
