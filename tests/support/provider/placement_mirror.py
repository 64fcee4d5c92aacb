# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A WSGI application in front of OpenStack Placement's that asks a ledger of ours for the same, request by request.

The peer answers the client. What a request changes is translated to the options of our tasks; then both must have accepted or both refused,
and both must hold the same providers, inventories, traits, aggregates and allocations. Queries are compared by their answers. Where they
differ, the ledger is filled from the peer again, so that later requests are compared as well.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import re
import typing as t
from functools import partial
from urllib.parse import parse_qsl

import sqlalchemy
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.matching import read_matching
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.own_names import Names, put_names, remove_names
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers, remove_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_consumers, read_uuids
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_known_names, read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import NEWEST, REPAIRS, candidates_of, repaired
from placement import db_api
from webob import Request

_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
STALE = 1_000_000
"""Added to a generation that is not the one that the peer has, so that it is not ours either."""
DEFECT = "a defect of the peer: the answers are equal once it is repaired in this process"
_PROTOCOL = {401, 403, 405, 406, 415}
_OF_A_GROUP = {"resources", "required", "member_of", "in_tree"}
_NOBODY = "00000000-0000-0000-0000-000000000000"
"""The project and user that the peer gives consumers of versions of its API that had neither."""
_BY_FORM = re.compile(r"JSON does not validate|Malformed JSON|The resource could not be found|Unacceptable version|Invalid query string")


@dataclasses.dataclass(frozen=True)
class Step:
    """A request, what both made of it, and what kind of comparison it was: write, candidates, providers, state or form."""

    kind: str
    request: str
    peer: str
    ours: str
    because: str = ""

    @property
    def differs(self) -> bool:
        """Whether the two said different things."""
        return self.peer != self.ours


@dataclasses.dataclass(frozen=True)
class State:
    """What both hold, in one form; generations are of each side's own."""

    providers: t.Mapping[str, tuple[str, str | None]]
    inventories: t.Mapping[str, t.Mapping[str, tuple[float, ...]]]
    traits: t.Mapping[str, frozenset[str]]
    aggregates: t.Mapping[str, frozenset[str]]
    allocations: t.Mapping[str, t.Mapping[str, t.Mapping[str, int]]]
    owners: t.Mapping[str, tuple[str | None, str | None, str | None]]
    generations: t.Mapping[str, int] = dataclasses.field(compare=False)
    consumer_generations: t.Mapping[str, int] = dataclasses.field(compare=False)

    def differences(self, other: State) -> str:
        """Return the names of the parts that are not equal."""
        names = [one.name for one in dataclasses.fields(self) if one.compare]
        return ", ".join(name for name in names if getattr(self, name) != getattr(other, name))


def peer_state() -> State:
    """Return what the peer's tables hold."""
    with db_api.get_placement_engine().connect() as connection:

        def rows(text: str) -> list[t.Any]:
            return list(connection.execute(sqlalchemy.text(text)))

        found = rows(
            "SELECT p.uuid, p.name, p.generation, q.uuid FROM resource_providers p LEFT JOIN resource_providers q"
            " ON q.id = p.parent_provider_id"
        )
        held = "resource_providers p ON p.id = x.resource_provider_id"
        inventories: dict[str, dict[str, tuple[float, ...]]] = {row[0]: {} for row in found}
        fields = ", ".join(f"x.{name}" for name in _FIELDS)
        classes = "resource_classes c ON c.id = x.resource_class_id"
        for uuid, name, *values in rows(f"SELECT p.uuid, c.name, {fields} FROM inventories x JOIN {held} JOIN {classes}"):
            inventories[uuid][name] = tuple(values)
        traits: dict[str, set[str]] = {row[0]: set() for row in found}
        for uuid, name in rows(f"SELECT p.uuid, t.name FROM resource_provider_traits x JOIN {held} JOIN traits t ON t.id = x.trait_id"):
            traits[uuid].add(name)
        aggregates: dict[str, set[str]] = {row[0]: set() for row in found}
        for uuid, name in rows(
            f"SELECT p.uuid, a.uuid FROM resource_provider_aggregates x JOIN {held} JOIN placement_aggregates a ON a.id = x.aggregate_id"
        ):
            aggregates[uuid].add(name)
        allocations: dict[str, dict[str, dict[str, int]]] = collections.defaultdict(lambda: collections.defaultdict(dict))
        for consumer, uuid, name, used in rows(
            f"SELECT x.consumer_id, p.uuid, c.name, x.used FROM allocations x JOIN {held} JOIN {classes}"
        ):
            allocations[consumer][uuid][name] = used
        consumers = rows(
            "SELECT c.uuid, c.generation, p.external_id, u.external_id, y.name FROM consumers c JOIN projects p ON p.id = c.project_id"
            " JOIN users u ON u.id = c.user_id LEFT JOIN consumer_types y ON y.id = c.consumer_type_id"
        )
    return State(
        {row[0]: (row[1], row[3]) for row in found},
        inventories,
        {uuid: frozenset(names) for uuid, names in traits.items()},
        {uuid: frozenset(names) for uuid, names in aggregates.items()},
        {consumer: {uuid: dict(amounts) for uuid, amounts in parts.items()} for consumer, parts in allocations.items()},
        {row[0]: (row[2], row[3], None if row[4] in (None, "unknown") else row[4]) for row in consumers if row[0] in allocations},
        {row[0]: row[2] for row in found},
        {row[0]: row[1] for row in consumers},
    )


class Ours:
    """A ledger in memory that holds what the peer holds."""

    def __init__(self, state: State, names: Names) -> None:
        self._stack = contextlib.ExitStack()
        world = {
            "providers": [
                {
                    "uuid": uuid,
                    "name": name,
                    "parent": parent,
                    "inventories": {one: dict(zip(_FIELDS, values)) for one, values in state.inventories[uuid].items()},
                    "traits": sorted(state.traits[uuid]),
                    "aggregates": sorted(state.aggregates[uuid]),
                }
                for uuid, (name, parent) in state.providers.items()
            ],
            "allocations": state.allocations,
            "custom_traits": sorted(names.traits),
            "custom_classes": sorted(names.classes),
        }
        self.ledger = self._stack.enter_context(ledger_of(parse_world(world)))
        owned = [self._owned(uuid, *owner, state.allocations[uuid]) for uuid, owner in state.owners.items()]
        if owned:
            make_claims(self.ledger, parse_claims(owned, "claims[{}]"))

    def close(self) -> None:
        """Forget everything."""
        self._stack.close()

    @staticmethod
    def _owned(uuid: str, project: str | None, user: str | None, kind: str | None, amounts: t.Any) -> dict[str, t.Any]:
        owner = {"project": project, "user": user, "consumer_type": kind}
        named = {key: value for key, value in owner.items() if value is not None}
        return {"consumer": uuid, "allocations": amounts, "take_over": True, **named}

    def state(self) -> State:
        """Return what the ledger holds."""
        world, consumers = self.ledger.read(read_world), self.ledger.read(read_consumers)
        held = {uuid: parts for uuid, parts in world.allocations.items() if any(parts.values())}
        return State(
            {one.uuid: (one.name, one.parent) for one in world.providers},
            {
                one.uuid: {name: tuple(getattr(stock, field) for field in _FIELDS) for name, stock in one.inventories.items()}
                for one in world.providers
            },
            {one.uuid: frozenset(one.traits) for one in world.providers},
            {one.uuid: frozenset(one.aggregates) for one in world.providers},
            {uuid: {one: dict(amounts) for one, amounts in parts.items()} for uuid, parts in held.items()},
            {uuid: (consumers[uuid].project, consumers[uuid].user, consumers[uuid].type) for uuid in held},
            {one.uuid: one.generation for one in world.providers},
            {uuid: consumer.generation for uuid, consumer in consumers.items()},
        )

    def put(self, entry: t.Any) -> None:
        """Declare a provider."""
        changes = parse_changes([entry], "providers[{}]")
        self.ledger.write(partial(put_providers, changes=changes))

    def remove(self, uuid: str) -> None:
        """Remove a provider."""
        self.ledger.write(partial(remove_providers, changes=parse_changes([{"uuid": uuid}], "providers[{}]")))

    def claim(self, entries: list[t.Any]) -> None:
        """Have consumers claim."""
        make_claims(self.ledger, parse_claims(entries, "consumers[{}]"))

    def reshape(self, forms: t.Any, entries: list[t.Any], generations: t.Mapping[str, int]) -> None:
        """Give providers other inventories while claims move."""
        inventories, claims = parse_reshape(forms, "inventories"), parse_claims(entries, "consumers[{}]")
        self.ledger.write(partial(reshape, inventories=inventories, claims=claims, generations=generations))

    def put_names(self, names: Names) -> None:
        """Make names of one's own."""
        self.ledger.write(partial(put_names, names=names))

    def remove_names(self, names: Names) -> None:
        """Remove names of one's own."""
        self.ledger.write(partial(remove_names, names=names))


class Untranslated(Exception):
    """A request that has no counterpart in options of a task, such as a body that is no JSON."""


class Translator:
    """Carries a request of the peer's API out on a ledger of ours. `before` is the peer's state before it."""

    def __init__(self, ours: Ours, before: State) -> None:
        self.ours, self.before, self.held = ours, before, ours.state()

    def generation(self, uuid: str, given: t.Any) -> dict[str, int]:
        """Return the option for a generation that the client has: ours if it is the peer's present one, else another."""
        if given is None:
            return {}
        if not isinstance(given, int):
            raise Untranslated
        mine = self.held.generations.get(uuid, 0)
        return {"generation": mine if given == self.before.generations.get(uuid) else mine + STALE}

    def claim(self, consumer: str, body: t.Any, version: tuple[int, int]) -> dict[str, t.Any]:
        """Return a claim as tasks take it, from the body of a request in any of its forms."""
        given = body["allocations"]
        if isinstance(given, list):
            amounts = {one["resource_provider"]["uuid"]: one["resources"] for one in given}
        else:
            amounts = {uuid: one["resources"] for uuid, one in given.items()}
        project, user = body.get("project_id", _NOBODY), body.get("user_id", _NOBODY)
        owner = {"project": project, "user": user, "consumer_type": body.get("consumer_type")}
        entry = {"consumer": consumer, "allocations": amounts, "take_over": True, **{k: v for k, v in owner.items() if v is not None}}
        if entry.get("consumer_type") == "unknown":
            del entry["consumer_type"]
        if version >= (1, 28):
            given, mine = body["consumer_generation"], self.held.consumer_generations.get(consumer, 0)
            same = given == self.before.consumer_generations.get(consumer)
            entry["consumer_generation"] = mine if same else mine + STALE
        return entry

    def carry_out(self, method: str, path: str, body: t.Any, version: tuple[int, int]) -> None:
        """Raise what our ledger raises, Untranslated."""
        parts = path.strip("/").split("/")
        call = getattr(self, f"_{method.lower()}_{parts[0]}", None)
        if call is None:
            raise Untranslated
        try:
            call(parts[1:], body, version)
        except (AttributeError, KeyError, TypeError) as error:
            raise Untranslated from error

    def _post_resource_providers(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        if not rest:
            parent = body.get("parent_provider_uuid")
            given = {"uuid": body.get("uuid"), "parent": parent}
            return self.ours.put({"name": body["name"], **{key: value for key, value in given.items() if value is not None}})
        uuid, _part = rest
        fields = {key: body[key] for key in _FIELDS if key in body}
        entry = {"uuid": uuid, "add": {"inventories": {body["resource_class"]: fields}}}
        return self.ours.put({**entry, **self.generation(uuid, body.get("resource_provider_generation"))})

    def _put_resource_providers(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        uuid = rest[0]
        entry: dict[str, t.Any] = {"uuid": uuid}
        if len(rest) == 1:
            entry["name"] = body["name"]
            if "parent_provider_uuid" in body:
                entry["parent"] = body["parent_provider_uuid"] or ""
            return self.ours.put(entry)
        if rest[1] == "aggregates" and isinstance(body, list):
            return self.ours.put({**entry, "aggregates": body})
        entry |= self.generation(uuid, body.get("resource_provider_generation"))
        if rest[1:] == ["inventories"]:
            return self.ours.put({**entry, "inventories": body["inventories"]})
        if rest[1] == "inventories":
            return self.ours.put({**entry, "add": {"inventories": {rest[2]: {key: body[key] for key in _FIELDS if key in body}}}})
        return self.ours.put({**entry, rest[1]: body[rest[1]]})

    def _delete_resource_providers(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        if len(rest) == 1:
            return self.ours.remove(rest[0])
        if len(rest) == 3:
            return self.ours.put({"uuid": rest[0], "remove": {rest[1]: [rest[2]]}})
        return self.ours.put({"uuid": rest[0], rest[1]: {} if rest[1] == "inventories" else []})

    def _put_allocations(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self.ours.claim([self.claim(rest[0], body, version)])

    def _post_allocations(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self.ours.claim([self.claim(consumer, one, version) for consumer, one in body.items()])

    def _delete_allocations(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self.ours.claim([{"consumer": rest[0], "allocations": {}, "take_over": True}])

    def _post_reshaper(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        forms = {uuid: one["inventories"] for uuid, one in body["inventories"].items()}
        seen = {uuid: self.generation(uuid, one["resource_provider_generation"]) for uuid, one in body["inventories"].items()}
        entries = [self.claim(consumer, one, version) for consumer, one in body["allocations"].items()]
        self.ours.reshape(forms, entries, {uuid: one["generation"] for uuid, one in seen.items()})

    def _put_traits(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self._own("traits", rest[0])
        self.ours.put_names(Names(traits=frozenset(rest)))

    def _delete_traits(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self._own("traits", rest[0])
        self.ours.remove_names(Names(traits=frozenset(rest)))

    def _put_resource_classes(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        if body is not None:
            raise Untranslated
        self._own("classes", rest[0])
        self.ours.put_names(Names(classes=frozenset(rest)))

    def _post_resource_classes(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self._own("classes", body["name"])
        self.ours.put_names(Names(classes=frozenset([body["name"]])))

    def _delete_resource_classes(self, rest: list[str], body: t.Any, version: tuple[int, int]) -> None:
        self._own("classes", rest[0])
        self.ours.remove_names(Names(classes=frozenset(rest)))

    def _own(self, kind: str, name: str) -> None:
        """Refuse what a task refuses as it reads its options."""
        parse_world({f"custom_{kind}": [name], "providers": []})
        if not re.fullmatch(r"CUSTOM_[A-Z0-9_]+", name):
            raise InputError([])


class Mirror:
    """The application: `steps` is what was compared."""

    def __init__(self, app: t.Any) -> None:
        self._app = app
        self._ours: Ours | None = None
        self.steps: list[Step] = []

    def __call__(self, environ: dict[str, t.Any], start_response: t.Any) -> t.Any:
        """Answer as the peer does, and compare."""
        request = Request(environ)
        body = request.body
        before = peer_state()
        if self._ours is None:
            self._ours = Ours(before, peer_names())
        response = request.get_response(self._app)
        step = self._compared(request, body, response, before)
        self.steps.append(step)
        if step.differs or step.kind == "form":
            self._refill()
        return response(environ, start_response)

    def _compared(self, request: Request, body: bytes, response: t.Any, before: State) -> Step:
        said = f"{request.method} {request.path_qs}"
        because = response.text[:1000] if response.status_int >= 400 else ""
        if request.method == "GET" and response.status_int not in _PROTOCOL:
            return self._read(request, said, response.status_int)
        version = _version(request.headers.get("OpenStack-API-Version", ""))
        is_form = response.status_int in _PROTOCOL or request.method not in ("PUT", "POST", "DELETE") or _BY_FORM.search(response.text)
        if is_form:
            return Step("form", said, "", "", f"{response.status_int}")
        mine = "accepted"
        try:
            text = json.loads(body) if body else None
            if request.path == "/resource_providers" and response.status_int < 400 and isinstance(text, dict):
                # The peer draws a UUID for a provider without one; ours follows from the name.
                text.setdefault("uuid", response.headers["Location"].rpartition("/")[2])
            Translator(self._ours, before).carry_out(request.method, request.path, text, version)
        except (Untranslated, json.JSONDecodeError):
            return Step("form", said, "", "", "no counterpart")
        except (InputError, NoSolution) as error:
            mine, because = "refused", f"{because} | {type(error).__name__}: {error}"
        theirs = "accepted" if response.status_int < 400 else "refused"
        if mine == theirs:
            apart = peer_state().differences(self._ours.state())
            mine += f", {apart} differ" if apart else ""
        return Step("write", said, theirs, mine, because)

    def _read(self, request: Request, said: str, status: int) -> Step:
        path = request.path.strip("/")
        if path == "allocation_candidates":
            return self._candidates(request.query_string, said)
        if path == "resource_providers" and {key for key, _value in parse_qsl(request.query_string)} & _OF_A_GROUP:
            return self._providers(request, said)
        # Both hold the same, as was compared after each write.
        return Step("state", said, "", "") if status < 400 else Step("form", said, "", "", f"GET {status}")

    def _ask(self, path: str) -> tuple[int, t.Any]:
        """Ask the newest version of the peer: older ones leave out what they do not know."""
        asked = Request.blank(path, headers={"x-auth-token": "admin", "OpenStack-API-Version": NEWEST, "accept": "application/json"})
        answer = asked.get_response(self._app)
        return answer.status_int, json.loads(answer.body)

    def _candidates(self, query: str, said: str) -> Step:
        whole = "&".join(part for part in query.split("&") if not part.startswith("limit="))
        step = self._all_candidates(whole, said)
        if step.differs or whole == query:
            return step
        # Which of them a limit leaves is nobody's promise, only how many.
        limited = self._all_candidates(query, said)
        return Step("candidates", said, str(limited.peer.count("\n")), str(limited.ours.count("\n")))

    def _all_candidates(self, query: str, said: str) -> Step:
        index = build_index(self._ours.ledger.read(read_world))
        try:
            found = find_candidates(index, parse_query(query, self._ours.ledger.read(read_known_names)), SearchOptions(distinct="mappings"))
            mine = _as_text((one["allocations"], one["mappings"]) for one in found.candidates)
        except InputError as error:
            mine = f"refused {error}"
        theirs = self._peers_candidates(query)
        if theirs.startswith("refused") and mine.startswith("refused"):
            return Step("candidates", said, "refused", "refused")
        if mine != theirs:
            with repaired(REPAIRS):
                if self._peers_candidates(query) == mine:
                    return Step("candidates", said, theirs, mine, DEFECT)
        return Step("candidates", said, theirs, mine)

    def _peers_candidates(self, query: str) -> str:
        status, body = self._ask(f"/allocation_candidates?{query}")
        if status != 200:
            return f"refused {body}"
        found = body["allocation_requests"]
        pairs = (({uuid: held["resources"] for uuid, held in one["allocations"].items()}, one["mappings"]) for one in found)
        return _as_text(pairs)

    def _providers(self, request: Request, said: str) -> Step:
        pairs = parse_qsl(request.query_string)
        status, body = self._ask(request.path_qs)
        theirs = "refused" if status != 200 else str(sorted(one["uuid"] for one in body["resource_providers"]))
        try:
            group = parse_group(_group_of(pairs), "matching", self._ours.ledger.read(read_known_names))
            chosen = self._ours.ledger.read(partial(_matching, group=group))
        except InputError as error:
            return Step("providers", said, theirs, "refused", str(error))
        exact = {key: value for key, value in pairs if key in ("name", "uuid")}
        names = self._ours.state().providers
        mine = [uuid for uuid in chosen if exact.get("uuid", uuid) == uuid and exact.get("name", names[uuid][0]) == names[uuid][0]]
        return Step("providers", said, theirs, str(sorted(mine)))

    def close(self) -> None:
        """Close the ledger."""
        if self._ours is not None:
            self._ours.close()
            self._ours = None

    def _refill(self) -> None:
        self.close()
        self._ours = Ours(peer_state(), peer_names())


def peer_names() -> Names:
    """Return the names of one's own that the peer has."""
    with db_api.get_placement_engine().connect() as connection:

        def own(table: str) -> frozenset[str]:
            names = connection.execute(sqlalchemy.text(f"SELECT name FROM {table}")).scalars()
            return frozenset(name for name in names if name.startswith("CUSTOM_"))

        return Names(own("traits"), own("resource_classes"))


def _matching(connection: t.Any, group: t.Any) -> set[str]:
    return read_uuids(connection, read_matching(connection, group, read_now(connection)))


def _version(header: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", header)
    return (int(found[1]), int(found[2])) if found else (1, 39) if "latest" in header else (1, 0)


def _as_text(candidates: t.Any) -> str:
    return "\n".join(sorted(str([sorted(part) for part in candidate]) for candidate in candidates_of(candidates)))


def _group_of(pairs: list[tuple[str, str]]) -> dict[str, t.Any]:
    """Return what provider_info takes as `matching`, from the query that the peer takes."""
    group: dict[str, t.Any] = collections.defaultdict(list)
    for key, value in pairs:
        names = value.removeprefix("!").removeprefix("in:").split(",")
        if key == "resources":
            parts = (one.partition(":") for one in names)
            group[key] = {name: int(amount) if amount.isdigit() else amount for name, _colon, amount in parts}
        elif key == "in_tree":
            group[key] = value
        elif key == "required":
            some = [value] if value.startswith("in:") else value.split(",")
            for one in some:
                if one.startswith("in:"):
                    group["any_of"].append(names)
                else:
                    group["forbidden" if one.startswith("!") else "required"].append(one.removeprefix("!"))
        elif key == "member_of":
            group["not_member_of" if value.startswith("!") else "member_of"].extend(names if value.startswith("!") else [names])
    return dict(group)
