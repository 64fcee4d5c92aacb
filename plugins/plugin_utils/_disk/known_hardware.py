# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of a host's hardware without asking the host."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping

from .._common.facts import refuse_facts
from .._common.plain import is_literal

FACT = "bareon_hardware"
# A name of its own for what a user writes down: a fact of the same name, perhaps out of a cache, would hide it.
WRITTEN = "bareon_known_hardware"


def known_hardware(variables: Mapping[str, t.Any], template: Callable[[t.Any], t.Any]) -> t.Any:
    """Return what the user says of a host's hardware or, else, what was gathered; None without either.

    `variables` are those of the host, `template` resolves the templates in one of them. Raises InputError for a fact with a reserved name:
    it would hide what the user says.
    """
    facts = _gathered(variables)
    return facts if variables.get(WRITTEN) is None and facts is not None else _said(variables, template)


def present_hardware(variables: Mapping[str, t.Any], template: Callable[[t.Any], t.Any]) -> t.Any:
    """Return the gathered facts of a host's hardware or, else, the user's variables; None without either."""
    facts = _gathered(variables)
    return _said(variables, template) if facts is None else facts


def _gathered(variables: Mapping[str, t.Any]) -> t.Any:
    refuse_facts(variables)
    return (variables.get("ansible_facts") or {}).get(FACT)


def _said(variables: Mapping[str, t.Any], template: Callable[[t.Any], t.Any]) -> t.Any:
    said = variables.get(WRITTEN, variables.get(FACT))
    # Templating looks at each value for a tenth of a millisecond, and in a fleet at a hundred thousand of them.
    return said if is_literal(said) else template(said)
