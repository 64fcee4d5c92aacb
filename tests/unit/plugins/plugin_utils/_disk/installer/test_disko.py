# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for disko is Nix, and what disko's types accept. Nix itself is no package of Debian's or PyPI's: a reader of the
part of its language that is written, and disko's types stated a second time, stand in for it. Both refuse what they do not know."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import disko
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import (
    data_plan,
    hardware,
    make_plan,
    profile_plan,
    profiles_of_all_targets,
    whole_plan,
)

Plain = dict[str, t.Any]

_TOKENS = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\]=;]|[A-Za-z_][A-Za-z0-9_\'-]*|[0-9]+)')
_GUID = "[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"


class Reader:
    """Reads attribute sets, lists, strings, integers and booleans of Nix; everything else is an error."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKENS.match(text, at)
            assert found, f"no Nix: {text[at : at + 40]!r}"
            self._tokens.append(found[1])
            at = found.end()
        self._at = 0

    def value(self) -> t.Any:
        token = self._next()
        if token == "{":
            return self._attributes()
        if token == "[":
            items = []
            while self._tokens[self._at] != "]":
                items.append(self.value())
            self._next("]")
            return items
        if token.startswith('"'):
            assert not re.search(r"(?<!\\)\$\{", token), "an interpolation"
            return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), token[1:-1])
        if token in {"true", "false"}:
            return token == "true"
        assert token.isdigit(), token
        return int(token)

    def end(self) -> None:
        assert self._at == len(self._tokens)

    def _attributes(self) -> Plain:
        found: Plain = {}
        while self._tokens[self._at] != "}":
            name = self._next()
            key = Reader(name).value() if name.startswith('"') else name
            assert key not in found, f"{key} is set twice"
            self._next("=")
            found[key] = self.value()
            self._next(";")
        self._next("}")
        return found

    def _next(self, wanted: str | None = None) -> str:
        token = self._tokens[self._at]
        assert wanted is None or token == wanted, f"{token} for {wanted}"
        self._at += 1
        return token


def module(plan: Plain, *, password_file: str | None = "/key") -> Plain:
    text = write_plan(disko.TARGET, plan, None, lossy=False, password_file=password_file).value
    reader = Reader(text)
    found = reader.value()
    reader.end()
    assert set(found) == {"disko"}
    assert set(found["disko"]) == {"devices"}
    return t.cast("Plain", found["disko"]["devices"])


def words(value: t.Any) -> None:
    assert isinstance(value, list)
    assert all(isinstance(word, str) for word in value)


def check_content(content: Plain, devices: Plain, seen: list[tuple[str, str]]) -> None:
    """Hold a content against disko's type of that name."""
    own = {key: value for key, value in content.items() if key != "type"}
    kind = content["type"]
    if kind == "filesystem":
        assert set(own) <= {"format", "mountpoint", "mountOptions", "extraArgs"}
        assert isinstance(own["format"], str)
        assert own.get("mountpoint", "/").startswith("/")
        words(own.get("mountOptions", [])), words(own.get("extraArgs", []))
        seen.append((own["format"], own.get("mountpoint", "none")))
    elif kind == "swap":
        assert set(own) <= {"mountOptions", "extraArgs", "randomEncryption"}
        words(own.get("extraArgs", []))
        seen.append(("swap", "swap"))
    elif kind == "mdraid":
        assert set(own) == {"name"}
        assert own["name"] in devices["mdadm"]
        seen.append(("mdraid", own["name"]))
    elif kind == "lvm_pv":
        assert set(own) == {"vg"}
        assert own["vg"] in devices["lvm_vg"]
        seen.append(("lvm_pv", own["vg"]))
    else:
        assert kind == "luks"
        assert set(own) <= {"name", "passwordFile", "askPassword", "content"}
        assert isinstance(own["name"], str)
        assert ("passwordFile" in own) != ("askPassword" in own)
        assert own.get("askPassword", True) is True
        seen.append(("luks", own["name"]))
        check_content(own["content"], devices, seen)


def check(plan: Plain, devices: Plain) -> None:
    assert set(devices) <= {"disk", "mdadm", "lvm_vg"}
    seen: list[tuple[str, str]] = []
    parts = set()
    for disk in devices["disk"].values():
        assert set(disk) == {"type", "device", "content"}
        assert disk["type"] == "disk"
        assert set(disk["content"]) == {"type", "partitions"}
        assert disk["content"]["type"] == "gpt"
        for part in disk["content"]["partitions"].values():
            assert set(part) <= {"priority", "label", "type", "start", "size", "content"}
            assert isinstance(part["priority"], int)
            assert re.fullmatch(_GUID, part["type"])
            assert re.fullmatch("[0-9]+[KMGTP]?", part["size"])
            assert re.fullmatch("[0-9]+M", part["start"])
            assert len(part["label"]) <= 36
            parts.add((disk["device"], part["priority"], part["start"], part["size"], part["type"].lower()))
            if "content" in part:
                check_content(part["content"], devices, seen)
    assert parts == {
        (disk["name"], part["count"], f"{part['begin']}M", f"{part['end'] - part['begin']}M", part["guid"])
        for disk in plan["schema"]["parteds"]
        for part in disk["partitions"]
    }
    for array in devices.get("mdadm", {}).values():
        assert set(array) <= {"type", "level", "metadata", "content"}
        assert array["type"] == "mdadm"
        assert isinstance(array["level"], int)
        assert array["metadata"] in {"1", "1.0", "1.1", "1.2", "default", "ddf", "imsm"}
        check_content(array["content"], devices, seen)
    volumes = {}
    for name, group in devices.get("lvm_vg", {}).items():
        assert set(group) == {"type", "lvs"}
        assert group["type"] == "lvm_vg"
        for volume, made in group["lvs"].items():
            assert set(made) <= {"size", "content"}
            volumes[name, volume] = made["size"]
            if "content" in made:
                check_content(made["content"], devices, seen)
    static = plan["schema"]
    assert volumes == {(volume["vgname"], volume["name"]): f"{volume['size']}M" for volume in static["lvs"]}
    expected = [(entry["fs_type"], entry["mount"]) for entry in static["fss"]]
    expected += [("mdraid", array["name"].rsplit("/", 1)[-1]) for array in static["mds"] for _leg in array["devices"]]
    expected += [("lvm_pv", group["name"]) for group in static["vgs"] for _device in group["pvnames"]]
    expected += [("luks", container["name"]) for container in static["luks"]]
    assert sorted(seen) == sorted(expected)


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
@pytest.mark.parametrize("profile", profiles_of_all_targets())
def test_profiles_are_of_diskos_types(profile: str, firmware: str) -> None:
    plan = profile_plan(profile, firmware)
    check(plan, module(plan))


@pytest.mark.parametrize("plan", [whole_plan("uefi"), whole_plan("bios"), data_plan()])
@pytest.mark.parametrize("password_file", [None, "/key"])
def test_luks_arrays_and_swap(plan: Plain, password_file: str | None) -> None:
    check(plan, module(plan, password_file=password_file))


def test_text_cannot_break_out_of_a_string() -> None:
    wicked = 'a"; b = ${builtins.readFile /etc/shadow}; c = "\\\nlast'
    reader = Reader(disko.to_nix({wicked: wicked, "in": 1}))
    assert reader.value() == {wicked: wicked, "in": 1}


def test_spares_are_a_loss() -> None:
    plan = {**data_plan(), "schema": {**data_plan()["schema"]}}
    array = dict(plan["schema"]["mds"][0])
    array["spares"] = [plan["schema"]["parteds"][0]["partitions"][5]["name"]]
    plan["schema"]["mds"] = [array]
    with pytest.raises(InputError, match="pair: disko cannot make spares"):
        module(plan)


def test_zfs_pools_with_logs_caches_and_spares() -> None:
    spaces = [
        {
            "id": "tank",
            "type": "zpool",
            "legs": 4,
            "spares": 1,
            "size": 3000,
            "mount": "/tank",
            "properties": {"atime": False},
            "datasets": [
                {"name": "home/a", "quota": "1 GiB"},
                {"name": "home", "mount": "/home", "properties": {"recordsize": "16K"}},
                {"name": "none", "mount": "none"},
                {"name": "none/b"},
                {"name": "c"},
            ],
        },
        {"id": "log", "type": "partition", "log_of": "tank", "size": 100, "mirror": "required"},
        {"id": "cache", "type": "partition", "cache_of": "tank", "size": 100, "partition_label": "a cache"},
        {"id": "pond", "type": "zpool", "vdev": "stripe", "size": 300},
    ]
    devices = module(make_plan(spaces, hardware([("ssd", 10)] * 5)))
    labels = {}
    for disk in devices["disk"].values():
        for part in disk["content"]["partitions"].values():
            assert part["content"]["type"] == "zfs"
            labels.setdefault(part["content"]["pool"], set()).add("/dev/disk/by-partlabel/" + part["label"].replace(" ", "\\x20"))
    tank, pond = (devices["zpool"][name] for name in ("tank", "pond"))
    topology = tank["mode"]["topology"]
    mirrors = [[f"/dev/disk/by-partlabel/tank-{at}" for at in pair] for pair in ((1, 2), (3, 4))]
    assert topology["vdev"] == [{"mode": "mirror", "members": pair} for pair in mirrors]
    assert topology["log"] == [{"mode": "mirror", "members": [f"/dev/disk/by-partlabel/log-{at}" for at in (1, 2)]}]
    assert (topology["cache"], topology["spare"]) == (["/dev/disk/by-partlabel/a\\x20cache"], ["/dev/disk/by-partlabel/tank-5"])
    # disko makes no pool where not all partitions that are said to be of it are in it.
    members = [name for key in ("vdev", "log") for vdev in topology[key] for name in vdev["members"]]
    assert labels["tank"] == {*members, *topology["cache"], *topology["spare"]}
    assert pond["mode"]["topology"]["vdev"] == [{"mode": "", "members": ["/dev/disk/by-partlabel/pond"]}]
    assert (pond["rootFsOptions"], "mountpoint" in pond) == ({"mountpoint": "none"}, False)
    assert tank["options"] == {"ashift": "12"}
    assert tank["rootFsOptions"] == {"mountpoint": "/tank", "atime": "off"}
    assert tank["datasets"] == {
        "home/a": {"type": "zfs_fs", "options": {"quota": "1024M"}, "mountpoint": "/home/a"},
        "home": {"type": "zfs_fs", "options": {"mountpoint": "/home", "recordsize": "16K"}, "mountpoint": "/home"},
        "none": {"type": "zfs_fs", "options": {"mountpoint": "none"}},
        "none/b": {"type": "zfs_fs", "options": {"mountpoint": "none"}},
        "c": {"type": "zfs_fs", "options": {}, "mountpoint": "/tank/c"},
    }


def test_properties_of_pools_are_read_before_they_are_written() -> None:
    made = make_plan([{"id": "tank", "type": "zpool", "vdev": "stripe", "size": 300}], hardware([("ssd", 10)]))
    made["schema"]["zpools"][0]["properties"] = True
    with pytest.raises(InputError, match=r"schema\.zpools\[0\]\.properties: is True; must be properties of ZFS by their names"):
        module(made)
