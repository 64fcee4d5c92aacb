# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine with headers of LUKS 2 that are simulated: key slots with the keys that open them, and tokens. A run on it can be cut off."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import Outcome
from ansible_collections.bareon.allocator.plugins.module_utils._keys.jwe import thumbprints
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import PATIENCE, CommandFailed, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unlock import why_no_key_file
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine


def jwe(url: str, key: dict[str, str], content: bytes) -> str:
    """Return what Clevis would give for a server; nothing is encrypted."""
    tang = {"url": url, "adv": {"keys": [key]}}
    return ".".join([encoded(json.dumps({"clevis": {"pin": "tang", "tang": tang}}).encode()), "", "iv", encoded(content), "tag"])


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class CutOff(BaseException):
    """The power went."""


@dataclass
class SimulatedHeader:
    """Keys by slot, and tokens by number."""

    slots: dict[int, bytes]
    tokens: dict[int, dict[str, t.Any]] = field(default_factory=dict)

    def text(self) -> str:
        tokens = {str(number): token for number, token in self.tokens.items()}
        return json.dumps({"keyslots": {str(slot): {} for slot in self.slots}, "tokens": tokens})


class LuksMachine(RecordingMachine):
    """`headers` are by device, `secrets` the content of files by path. After `left` changes the power goes.

    `servers` are the keys that Tang servers sign with, by URL; `registers_hold` says whether the TPM gives out what it has sealed.
    """

    def __init__(self, headers: dict[str, SimulatedHeader], secrets: dict[str, bytes] | None = None, left: int = 10**6) -> None:
        super().__init__()
        self.headers, self.secrets, self.left = headers, {"/dev/tpmrm0": b"", **(secrets or {})}, left
        self.servers: dict[str, dict[str, str]] = {}
        self.registers_hold = True
        self.pins: dict[str, str] = {}

    @contextlib.contextmanager
    def handed(self, content: bytes) -> Iterator[str]:
        self.secrets["/handed"] = content
        yield "/handed"
        del self.secrets["/handed"]

    def why_no_key_file(self, path: str) -> str | None:
        return why_no_key_file(os.stat_result((0o100400, 1, 1, 1, 0, 0, len(self.secrets[path]), 0, 0, 0)))

    def create_secret(self, path: str, content: bytes) -> None:
        self._spend()
        assert path not in self.secrets
        self.secrets[path] = content

    def resolve(self, path: str) -> str | None:
        return path if path in self.secrets or path in self.headers else None

    def run(self, command: Sequence[str]) -> Outcome | None:
        self.events.append(("run", " ".join(command)))
        header = self.headers.get(command[-1])
        if command[:2] == ["cryptsetup", "isLuks"]:
            return Outcome(int(header is None), "", "")
        assert command[:3] == ["cryptsetup", "luksDump", "--dump-json-metadata"]
        return Outcome(1, "", "no header") if header is None else Outcome(0, header.text(), "")

    def change(
        self,
        command: Sequence[str],
        given: bytes = b"",
        patience: int = PATIENCE,
        accepted: Sequence[int] = (0,),
        environment: t.Mapping[str, str] | None = None,
    ) -> str:
        words = " ".join(command)
        self.events.append(("change", words, given))
        if command[0] != "cryptsetup":
            return self.other(command, given, (environment or {}).get("NEWPIN", ""))
        options = dict(re.findall(r"--([a-z-]+)(?:=(\S+))?", words))
        plain = [word for word in command[1:] if not word.startswith("--")]
        if plain[0] == "open":
            return self._opened(plain[1], options, given, accepted, command)
        self._spend()
        header = self.headers[plain[2] if plain[0] == "token" else plain[1]]
        if plain[0] == "luksAddKey":
            assert self._key(options, given) in header.slots.values(), "the key opens nothing"
            header.slots[int(options["key-slot"])] = self.secrets[plain[2]]
        elif plain[0] == "luksKillSlot":
            del header.slots[int(plain[2])]
            assert header.slots, "nothing opens it any more"
            for token in header.tokens.values():
                token["keyslots"] = [slot for slot in token["keyslots"] if slot != plain[2]]
        elif plain[1] == "import":
            assert int(options["token-id"]) not in header.tokens
            header.tokens[int(options["token-id"])] = json.loads(given)
        elif plain[1] == "remove":
            del header.tokens[int(options["token-id"])]
        else:
            raise StepFailed(f"unknown: {words}")
        return ""

    def other(self, command: Sequence[str], given: bytes, pin: str) -> str:
        """Answer Clevis, for which the server is any that `servers` has with its signing key, and systemd-cryptenroll."""
        if command[:2] == ["clevis", "encrypt"]:
            return jwe(json.loads(command[3])["url"], self._trusted(json.loads(command[3])), given)
        if command[:2] == ["clevis", "decrypt"]:
            protected, _key, _iv, sealed, _tag = given.decode().split(".")
            self._trusted({"url": json.loads(decoded(protected))["clevis"]["tang"]["url"], "thp": None})
            return decoded(sealed).decode()
        if command[0] == "systemd-cryptenroll":
            self._spend()
            header, options = self.headers[command[-1]], dict(re.findall(r"--([a-z0-9-]+)=(\S*)", " ".join(command)))
            assert self.secrets[options["unlock-key-file"]] in header.slots.values(), "the key opens nothing"
            slot = next(number for number in range(32) if number not in header.slots)
            token = next(number for number in range(32) if number not in header.tokens)
            header.slots[slot] = b"sealed"
            registers = [int(register) for register in options["tpm2-pcrs"].split("+") if register]
            header.tokens[token] = {"type": "systemd-tpm2", "keyslots": [str(slot)], "tpm2-pcrs": registers}
            if options.get("tpm2-with-pin") == "yes":
                assert pin, "it would ask somebody"
                header.tokens[token]["tpm2-pin"] = True
                self.pins[header.tokens[token]["keyslots"][0]] = pin
            return ""
        raise CommandFailed(command, None, f"there is no {command[0]} on this host")

    def _trusted(self, asked: dict[str, str | None]) -> dict[str, str]:
        """Return the key that a server signs with; it is the one that is asked for."""
        key = self.servers.get(str(asked["url"]))
        if key is None or asked["thp"] not in (None, *thumbprints({"adv": {"keys": [key]}})):
            raise StepFailed(f"{asked['url']} does not answer, or is not trusted")
        return key

    def _spend(self) -> None:
        if self.left == 0:
            raise CutOff
        self.left -= 1

    def _key(self, options: dict[str, str], given: bytes) -> bytes:
        return given if options["key-file"] == "-" else self.secrets[options["key-file"]]

    def _opened(self, device: str, options: dict[str, str], given: bytes, accepted: Sequence[int], command: Sequence[str]) -> str:
        assert "test-passphrase" in options
        if "token-only" in options:
            token = self.headers[device].tokens[int(options["token-id"])]
            right = not token.get("tpm2-pin") or self.pins[token["keyslots"][0]] == given.decode()
            return "Key slot unlocked." if self.registers_hold and right and token["keyslots"] else ""
        assert "disable-external-tokens" in options, "a TPM would open it whatever the key is"
        wanted, key = options.get("key-slot"), self._key(options, given)
        found = [slot for slot, known in self.headers[device].slots.items() if known == key and wanted in (None, str(slot))]
        if not found and 2 not in accepted:
            raise CommandFailed(command, 2, "no key")
        return f"Key slot {found[0]} unlocked." if found else ""
