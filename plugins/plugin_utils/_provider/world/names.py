# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of resource classes, traits, providers, consumers and aggregates: which are well formed, which are standard.

The standard names are those of the libraries os-resource-classes and os-traits; every other name starts with CUSTOM_,
as in OpenStack Placement.
"""

from __future__ import annotations

import re
import typing as t
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from ....module_utils._data.errors import suggest
from ..._common.libraries import os_resource_classes, os_traits

STANDARD_CLASSES: frozenset[str] = frozenset(os_resource_classes.STANDARDS)
STANDARD_TRAITS: frozenset[str] = frozenset(os_traits.get_traits())

SHARING_TRAIT = os_traits.MISC_SHARES_VIA_AGGREGATE
"""The trait of a provider that offers its inventory to every tree with which it has an aggregate in common."""

LONGEST_NAME = 255
LONGEST_PROVIDER_NAME = 200
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
CLASS_PATTERN = TRAIT_PATTERN = "^[A-Z][A-Z0-9_]*$"
UUID_PATTERN = f"^{_UUID.pattern}$"
_PROVIDER_NAMESPACE = uuid.UUID("6f1c9e0a-7c0b-5e52-9a53-1d3f6c1b7a44")
_AGGREGATE_NAMESPACE = uuid.UUID("0b8f4c86-4a26-5a0f-8f5c-0f3f2f8f9c17")
_CONSUMER_NAMESPACE = uuid.UUID("361e6d51-faec-444a-9079-341386da8e2e")
"""That of Ansible's filter to_uuid, so that a consumer has the same UUID whether a playbook names it or makes the UUID itself."""
_NEARLY_UUID = re.compile(r"[0-9a-fA-F-]{28,44}|[0-9a-fA-F]{8}-[\w-]{20,30}")
_AGGREGATE_NAME = re.compile(r"\w([\w ./@+-]*[\w./@+-])?")
AGGREGATE_PATTERN = f"^{_AGGREGATE_NAME.pattern}$"
CONSUMER_TYPE_PATTERN = "^[A-Z0-9_]+$"


@dataclass(frozen=True)
class KnownNames:
    """The resource classes and traits that exist: the standard ones and a world's own. `aggregates` are those that have names."""

    classes: frozenset[str] = STANDARD_CLASSES
    traits: frozenset[str] = STANDARD_TRAITS
    aggregates: frozenset[str] = frozenset()

    def why_not_class(self, name: t.Any) -> str:
        """Return what is wrong with a resource class, or an empty string when it exists."""
        return _why_unknown("resource class", name, self.classes)

    def why_not_trait(self, name: t.Any) -> str:
        """Return what is wrong with a trait, or an empty string when it exists."""
        return _why_unknown("trait", name, self.traits)

    def why_not_aggregate(self, reference: str) -> str:
        """Return what is wrong with an aggregate; any UUID is one, if only of no provider."""
        return "" if not why_no_uuid(reference) else _why_unknown("aggregate", reference, self.aggregates)


def known_names(classes: Iterable[str] = (), traits: Iterable[str] = (), aggregates: Iterable[str] = ()) -> KnownNames:
    """Return the standard names together with a world's own."""
    return KnownNames(STANDARD_CLASSES.union(classes), STANDARD_TRAITS.union(traits), frozenset(aggregates))


def why_no_class(name: t.Any) -> str:
    """Return what is wrong with the form of a resource class, or an empty string; a new custom name is well formed."""
    return _why_malformed("resource class", name, STANDARD_CLASSES)


def why_no_trait(name: t.Any) -> str:
    """Return what is wrong with the form of a trait, or an empty string; a new custom name is well formed."""
    return _why_malformed("trait", name, STANDARD_TRAITS)


def why_no_provider_name(name: t.Any) -> str:
    """Return what is wrong with a provider's name, or an empty string."""
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_PROVIDER_NAME:
        return f"must be a string of 1 to {LONGEST_PROVIDER_NAME} characters, not {name!r}"
    if not name.isprintable() or name != name.strip():
        return f"{name!r} must be printable characters, without blanks around them"
    return ""


def why_no_consumer(value: t.Any) -> str:
    """Return what is wrong with a consumer's UUID or name, or an empty string."""
    return "" if not why_no_uuid(value) else why_no_provider_name(value) or _why_nearly_uuid(value)


def why_no_aggregate(value: t.Any) -> str:
    """Return what is wrong with an aggregate's UUID or name, or an empty string."""
    if not why_no_uuid(value):
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_PROVIDER_NAME or _AGGREGATE_NAME.fullmatch(value) is None:
        return (
            f"{value!r} is neither the UUID nor the name of an aggregate; a name has 1 to {LONGEST_PROVIDER_NAME} letters, digits, "
            "blanks and ./@+-_, and begins with a letter or a digit"
        )
    return _why_nearly_uuid(value)


def _why_nearly_uuid(value: str) -> str:
    says = why_no_uuid(value)
    return f"{says}, or give a name that is less like one" if _NEARLY_UUID.fullmatch(value) else ""


def why_no_uuid(value: t.Any) -> str:
    """Return what is wrong with a UUID, or an empty string."""
    if not isinstance(value, str) or _UUID.fullmatch(value) is None:
        return f"{value!r} is not a UUID; write it as 8-4-4-4-12 hexadecimal digits"
    return ""


def canonical_uuid(value: str) -> str:
    """Return a well-formed UUID in the one spelling that is compared and stored: lower case."""
    return value.lower()


def canonical_reference(value: str) -> str:
    """Return what means a provider as it is compared: a UUID in lower case, a name as it is."""
    return value if why_no_uuid(value) else canonical_uuid(value)


def custom_trait(kind: str, name: str) -> str:
    """Return a trait of one's own for anything that has a name, such as CUSTOM_VG_GUESTS."""
    return f"CUSTOM_{kind.upper()}_{re.sub('[^A-Z0-9]', '_', name.upper())}"


def provider_uuid(name: str) -> str:
    """Return the UUID of a provider that was registered without one: always the same for the same name."""
    return str(uuid.uuid5(_PROVIDER_NAMESPACE, name))


def consumer_uuid(reference: str, project: str | None = None) -> str:
    """Return the UUID of a consumer that is given by UUID or name: always the same for the same name in the same project.

    That of a name without a project is what Ansible's filter to_uuid makes of the name, else of the project, a newline and the name,
    which no name contains.
    """
    if not why_no_uuid(reference):
        return canonical_uuid(reference)
    return str(uuid.uuid5(_CONSUMER_NAMESPACE, reference if project is None else f"{project}\n{reference}"))


def aggregate_uuid(reference: str) -> str:
    """Return the UUID of an aggregate that is given by UUID or name: always the same for the same name."""
    return str(uuid.uuid5(_AGGREGATE_NAMESPACE, reference)) if why_no_uuid(reference) else canonical_uuid(reference)


def names_by_uuid(references: Iterable[str], to_uuid: t.Callable[[str], str]) -> dict[str, str]:
    """Return the names among references (UUIDs or names), by the UUIDs that they stand for."""
    return {to_uuid(reference): reference for reference in references if why_no_uuid(reference)}


def _why_malformed(kind: str, name: t.Any, standard: frozenset[str]) -> str:
    if isinstance(name, str) and name in standard:
        return ""
    if not isinstance(name, str) or _CUSTOM.fullmatch(name) is None:
        hint = suggest(name, standard) if isinstance(name, str) else ""
        return f"{name!r} is not a standard {kind}{hint}; a {kind} of your own is CUSTOM_ and then A-Z, 0-9 and _"
    if len(name) > LONGEST_NAME:
        return f"the {kind} {name[:40]}... is longer than {LONGEST_NAME} characters"
    return ""


def _why_unknown(kind: str, name: t.Any, known: frozenset[str]) -> str:
    if isinstance(name, str) and name in known:
        return ""
    hint = suggest(name, known) if isinstance(name, str) else ""
    return f"there is no {kind} {name!r}{hint}"
