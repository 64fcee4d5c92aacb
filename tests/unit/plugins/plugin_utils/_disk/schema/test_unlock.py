# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What opens encrypted spaces, from the wish to the lines of crypttab, the table, and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.unlock import Method
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import curtin, ignition
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.reasons import reasons_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, host_files, needed_tools
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]

FILE: Plain = {"method": "key_file", "path": "/etc/keys/data.key"}
PASSPHRASE, RECOVERY = {"method": "passphrase"}, {"method": "recovery"}
DATA: Plain = {"id": "data", "type": "partition", "encrypt": True, "fs_type": "ext4", "mount": "/srv"}
GROUP: Plain = {"id": "os", "type": "vg", "contains": ["root", "home"], "encrypt": True}
ROOT: Plain = {"id": "root", "type": "lv", "size": 2000, "fs_type": "ext4", "mount": "/srv/root"}
HOME: Plain = {"id": "home", "type": "lv", "size": 2000, "fs_type": "ext4", "mount": "/srv/home"}


def plan(*spaces: Plain, disks: int = 1) -> Plain:
    return make_plan(list(spaces), hardware([("ssd", 20)] * disks))


def mistakes(*spaces: Plain) -> str:
    with pytest.raises(InputError) as caught:
        plan(*spaces)
    return str(caught.value)


def lines(made: Plain, settings: Settings | None = None, present: dict[str, str] | None = None) -> list[str]:
    """Return the lines of crypttab for a plan that was carried out."""
    found = host_files({"schema": made["schema"], **known(made)}, settings or Settings(), present)
    return [one["line"] for one in found["containers"]]


def known(made: Plain) -> Plain:
    """Return what disk_layout tells of a plan."""
    return {
        "containers": [{"name": one["name"], "uuid": f"u-{one['name']}"} for one in made["schema"]["luks"]],
        "filesystems": [{"device": one["device"], "uuid": "u"} for one in made["schema"]["fss"]],
    }


def test_methods_go_from_the_space_to_the_container() -> None:
    made = plan({**DATA, "unlock": [FILE, RECOVERY]})
    assert [container["unlock"] for container in made["schema"]["luks"]] == [[FILE, RECOVERY]]
    (container,) = parse_static_schema(made["schema"]).containers
    assert container.unlock == (Method("key_file", path="/etc/keys/data.key"), Method("recovery"))
    assert "unlock" not in plan(DATA)["schema"]["luks"][0]


def test_a_group_is_opened_as_a_whole() -> None:
    made = plan(GROUP, {**ROOT, "unlock": [RECOVERY]}, HOME, disks=2)
    assert {str(container["unlock"]) for container in made["schema"]["luks"]} == {str([RECOVERY])}
    assert mistakes(GROUP, {**ROOT, "unlock": [RECOVERY]}, {**HOME, "unlock": [PASSPHRASE]}) == (
        "schema[2].unlock: differs from that of 'root', with which it lies in one group; groups are encrypted, and opened, as a whole"
    )


def test_a_mirror_that_is_wanted_keeps_its_methods() -> None:
    made = plan({**DATA, "mirror": "required", "unlock": [RECOVERY]}, disks=2)
    assert [container["unlock"] for container in made["schema"]["luks"]] == [[RECOVERY]]
    made = plan({**GROUP, "mirror": "required", "unlock": [RECOVERY]}, ROOT, HOME, disks=2)
    assert [container["unlock"] for container in made["schema"]["luks"]] == [[RECOVERY]]


def test_every_mistake_is_told() -> None:
    unlock = [
        {"method": "smell"},
        {"method": "key_file"},
        {"method": "recovery", "path": "/a"},
        {"path": "/b"},
        RECOVERY,
        {**FILE, "path": "a b"},
        {"method": "tang", "url": "tang"},
        {"method": "tpm2", "pcrs": [24]},
    ]
    assert mistakes({**DATA, "encrypt": False, "unlock": [RECOVERY]}) == "schema[0].unlock: says what opens LUKS, so it needs encrypt: true"
    told = mistakes({**DATA, "unlock": unlock})
    for says in (
        "schema[0].unlock[0].method: is 'smell'; must be one of tpm2, tang, key_file, passphrase, recovery",
        "schema[0].unlock[1].path: is missing; key_file needs it",
        "schema[0].unlock[2].path: does not apply to recovery, which takes no other keys",
        "schema[0].unlock[3].method: is missing",
        "schema[0].unlock[4].method: recovery is listed already",
        "schema[0].unlock[5].path: is 'a b'; must be an absolute path without blanks",
        "schema[0].unlock[6].thumbprint: is missing; tang needs it",
        "schema[0].unlock[6].url: is 'tang'; must be a URL such as http://tang.example",
        "schema[0].unlock[7].pcrs[0]: is 24; must be a whole number from 0 to 23",
    ):
        assert says in told


def test_the_host_says_the_same_of_a_static_schema() -> None:
    made = plan(DATA)["schema"]
    (container,) = made["luks"]
    with pytest.raises(SchemaMistakes) as error:
        parse_static_schema({**made, "luks": [{**container, "unlock": [{"method": "key_file"}, {"method": "smell"}]}]})
    assert error.value.mistakes == (
        "luks[0].unlock[1].method: is 'smell'; must be one of tpm2, tang, key_file, passphrase, recovery",
        "luks[0].unlock[0].path: is missing; key_file needs it",
    )


def test_crypttab_names_the_key_file_that_opens_it_and_not_the_one_that_made_it() -> None:
    made_with = Settings(key_file="/run/made-with")
    assert lines(plan({**DATA, "unlock": [RECOVERY, FILE]}), made_with) == ["data-crypt UUID=u-data-crypt /etc/keys/data.key luks"]
    assert lines(plan({**DATA, "unlock": [PASSPHRASE]}), made_with) == ["data-crypt UUID=u-data-crypt none luks"]
    assert lines(plan(DATA), made_with) == ["data-crypt UUID=u-data-crypt /run/made-with luks"]
    asked_for = Settings(key_files={"data": "/etc/own"})
    assert lines(plan({**DATA, "unlock": [FILE]}), asked_for) == ["data-crypt UUID=u-data-crypt /etc/own luks"]


def test_crypttab_and_fstab_wait_for_the_network_with_tang_but_not_for_root() -> None:
    tang = {"method": "tang", "url": "http://tang.example", "thumbprint": "A" * 43}
    made = plan(
        {**DATA, "unlock": [tang]}, {"id": "swap", "type": "partition", "size": 500, "fs_type": "swap", "encrypt": True, "unlock": [tang]}
    )
    assert lines(made) == [
        "data-crypt UUID=u-data-crypt none luks,_netdev",
        "swap-crypt UUID=u-swap-crypt none luks,_netdev,nofail",
    ]
    found = host_files({"schema": made["schema"], **known(made)}, Settings())
    assert [mount["opts"] for mount in (*found["mounts"], *found["swaps"])] == ["defaults,_netdev", "defaults,nofail"]
    root = plan({**DATA, "mount": "/", "unlock": [tang]})
    assert lines(root) == ["data-crypt UUID=u-data-crypt none luks"]
    assert [mount["opts"] for mount in host_files({"schema": root["schema"], **known(root)}, Settings())["mounts"]] == ["defaults"]


def test_crypttab_asks_the_tpm() -> None:
    made = plan({**DATA, "unlock": [{"method": "tpm2", "pcrs": [7, 4]}, FILE]})
    assert made["schema"]["luks"][0]["unlock"][0] == {"method": "tpm2", "pcrs": [4, 7]}
    there = {"/etc/crypttab": "data-crypt UUID=u-data-crypt /etc/old luks\n"}
    assert lines(made, present=there) == ["data-crypt UUID=u-data-crypt none luks,tpm2-device=auto"]
    assert needed_tools(made["schema"])[:4] == ["sfdisk", "cryptsetup", "systemd-cryptenroll", "tpm2"]


def test_the_reasons_of_a_space_say_what_opens_it() -> None:
    assert reasons_of({**DATA, "unlock": [FILE, RECOVERY]}, 1000)[-2:] == ("encrypted with LUKS", "opened by key_file or recovery")


def test_ignition_writes_tang_and_the_tpm() -> None:
    made = plan({**DATA, "unlock": [{"method": "tpm2"}, {"method": "tang", "url": "http://t", "thumbprint": "A" * 43}]})
    written = write_plan(ignition.TARGET, made, None, lossy=False, key_file=None, tpm2=False)
    assert written.value["storage"]["luks"][0]["clevis"] == {"tpm2": True, "tang": [{"url": "http://t", "thumbprint": "A" * 43}]}
    assert [warning for warning in written.warnings if "whatever its registers are" in warning]


def test_installers_leave_it_to_the_running_system() -> None:
    made = plan({**DATA, "unlock": [PASSPHRASE, RECOVERY]})
    with pytest.raises(InputError) as error:
        write_plan(curtin.TARGET, made, None, lossy=False, version="2", key_file="/key")
    assert "curtin makes LUKS with one key, not with a recovery key; disk_keys adds that when the system runs" in str(error.value)
    assert write_plan(curtin.TARGET, plan({**DATA, "unlock": [PASSPHRASE]}), None, lossy=False, version="2", key_file="/key")
