# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owners of consumers: a name is unique in its project, and only a consumer's own project and user change it, or a takeover.

A consumer without a project or without a user belongs to the first claim that names one. A claim that names neither is for the only
consumer of that name, whatever its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from ....module_utils._data.errors import NoSolution
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..world.names import consumer_uuid
from .read import read_namesakes, read_used_uuids
from .stored import Consumer, Holding, Namesake

_FEW = 3


@dataclass(frozen=True)
class Asked:
    """The consumer that a claim is for: `uuid` is that of the name, where it has one, or the given one.

    `project` and `user` are those of the claim, None where it does not say.
    """

    uuid: str
    name: str | None
    project: str | None
    user: str | None
    take_over: bool


class NotOwner(NoSolution):
    """Consumers belong to others; `conflict` has them with their projects and users."""

    def __init__(self, owned: Sequence[Consumer]) -> None:
        lines = [f"{consumer.label} belongs to {owner_of(consumer)}" for consumer in owned]
        owners = [{"consumer": each.uuid, "name": each.label, "project": each.project, "user": each.user} for each in owned]
        super().__init__(f"{listed(lines, _FEW)}; take_over: true takes over what others own", {"owners": owners})


class NameNotUnique(NoSolution):
    """A name stands for consumers of several projects, or is taken in a project."""


def owner_of(consumer: Consumer) -> str:
    """Return whose a consumer is, in words."""
    owners = [f"{kind} {name}" for kind, name in (("project", consumer.project), ("user", consumer.user)) if name is not None]
    return ", ".join(owners) or "nobody"


def find_consumers(connection: sa.Connection, asked: Sequence[Asked]) -> list[str]:
    """Return the UUIDs of the consumers that claims are for: of those there are, or else of new ones.

    Raises NameNotUnique where a name stands for several and the claim does not say which.
    """
    names = {(each.name, each.project) for each in asked if each.name is not None}
    if not names:
        return [each.uuid for each in asked]
    namesakes = read_namesakes(connection, names)
    return [each.uuid if each.name is None else _find(connection, each, each.name, namesakes.get(each.name, [])) for each in asked]


def _find(connection: sa.Connection, asked: Asked, name: str, namesakes: Sequence[Namesake]) -> str:
    live = [each.consumer for each in namesakes if each.is_live]
    own = [consumer for consumer in live if consumer.project == asked.project]
    nobodys = [consumer for consumer in live if consumer.project is None]
    if asked.project is None:
        # Not said: the only one of that name, or the only one of that user.
        of_user = [consumer for consumer in live if asked.user is not None and consumer.user == asked.user]
        wanted = _only(name, nobodys or of_user or live)
    else:
        wanted = _only(name, own or nobodys or (live if asked.take_over else []))
    if wanted is None:
        # A name of one's own before a UUID alone.
        released = [each.consumer for each in namesakes if not each.is_live and each.consumer.project == asked.project]
        wanted = min(released, key=lambda consumer: consumer.name is None, default=None)
    return _new_uuid(connection, name, asked.project) if wanted is None else wanted.uuid


def _only(name: str, found: Sequence[Consumer]) -> Consumer | None:
    if len(found) > 1:
        owners = [owner_of(consumer) for consumer in found]
        says = f"{name} is the name of {len(found)} consumers, of {listed(owners, _FEW)}; give project, or the UUID"
        raise NameNotUnique(says, {"consumers": [consumer.uuid for consumer in found]})
    return found[0] if found else None


def _new_uuid(connection: sa.Connection, name: str, project: str | None) -> str:
    """Return the UUID of a new consumer: that of its name, unless a consumer that had the name before has kept it."""
    spellings = (name if number == 0 else f"{name}\n{number}" for number in count())
    return next(uuid for spelling in spellings if not read_used_uuids(connection, [uuid := consumer_uuid(spelling, project)]))


def refuse_others(asked: Iterable[Asked], holdings: Mapping[str, Holding]) -> None:
    """Raise NotOwner where a consumer that has something belongs to another project or user, and is not to be taken over."""
    owned = []
    for each in asked:
        holding = holdings.get(each.uuid)
        if holding is None or not holding.is_live:
            continue
        consumer = holding.consumer
        if not each.take_over and (_differ(consumer.project, each.project) or _differ(consumer.user, each.user)):
            owned.append(consumer)
    if owned:
        raise NotOwner(owned)


def _differ(owner: str | None, claimed: str | None) -> bool:
    return owner is not None and claimed is not None and owner != claimed


def find_former(connection: sa.Connection, wanted: Consumer) -> Consumer | None:
    """Return the consumer that has had a name in a project before, and holds nothing any more, if there is one.

    Raises NameNotUnique where that consumer is still there.
    """
    if wanted.name is None:
        return None
    for namesake in read_namesakes(connection, [(wanted.name, wanted.project)]).get(wanted.name, []):
        other = namesake.consumer
        if (other.name, other.project) != (wanted.name, wanted.project) or other.uuid == wanted.uuid:
            continue
        if namesake.is_live:
            says = f"{wanted.name} is already the name of a consumer of {owner_of(other)}"
            raise NameNotUnique(says, {"consumers": [other.uuid]})
        return other
    return None
