# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the boot stay over runs that say less of them: those of lines, those of options, and lines that are lost."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.boot_tables import Tables, changed_tables
from ansible_collections.bareon.allocator.plugins.module_utils._storage.crypttab import Container
from ansible_collections.bareon.allocator.plugins.module_utils._storage.fstab import Entry
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import Settings, host_files

MEMORY = "/etc/bareon/boot_settings.json"


def layout(**filesystem: t.Any) -> dict[str, t.Any]:
    """A file system in a container on a partition, which has several names."""
    return {
        "schema": {
            "luks": [{"name": "data", "device": "/dev/vdz1", **filesystem.pop("luks", {})}],
            "fss": [{"device": "/dev/mapper/data", "mount": "/srv", "fs_type": "ext4", **filesystem}],
        },
        "filesystems": [{"device": "/dev/mapper/data", "uuid": "u-fs", "names": ["LABEL=archive", "/dev/mapper/data"], "mountpoints": []}],
        "containers": [{"name": "data", "uuid": "u-luks", "names": ["PARTUUID=AA-1", "/dev/vdz1"]}],
    }


class Host:
    """A host's tables, and runs that change them as the modules do."""

    def __init__(self, fstab: str = "", crypttab: str = "") -> None:
        self.texts = {"/etc/fstab": fstab, "/etc/crypttab": crypttab}

    def run(self, made: dict[str, t.Any] | None = None, cut: int | None = None, **settings: t.Any) -> list[str]:
        """Return the paths of the tables that a run changes; it may be cut off after some of the files that it writes."""
        found = host_files(made or layout(), Settings(**settings), self.texts)
        fields = ("src", "path", "fstype", "opts", "dump", "passno")
        lines = [Entry(*(one[field] for field in fields)) for one in found["mounts"] if not one["configured"]]
        columns = ("name", "source", "key_file", "options")
        containers = [Container(*(one[column] for column in columns)) for one in found["containers"] if not one["configured"]]
        (memory,) = found["boot_settings"]
        wanted = Tables(tuple(lines), tuple(containers), boot_settings=None if memory["configured"] else memory["text"])
        changes = changed_tables(wanted, {path: self.texts.get(path) for path in wanted.paths})
        writes = [] if memory["prepared"] else [(MEMORY, memory["before_tables"])]
        for path, text in [*writes, *((change.path, change.after) for change in changes)][:cut]:
            self.texts[path] = text
        return [change.path for change in changes]

    def options(self) -> tuple[str, str]:
        """Return the options of the mount, and the key file and options of the container."""
        mount, container = self.texts["/etc/fstab"].split()[-3], self.texts["/etc/crypttab"].split()
        return mount, " ".join(container[2:])


LINES = ("# mine\n{} /srv ext4 noatime,nofail,x-systemd.device-timeout=30 0 0\n", "data {} /etc/keys/a luks,discard,header=/etc/h,nofail\n")


@pytest.mark.parametrize("mount", ["UUID=u-fs", "UUID=U-FS", "LABEL=archive", 'LABEL="archive"', "/dev/mapper/data"])
@pytest.mark.parametrize("container", ["UUID=u-luks", "PARTUUID=aa-1", "/dev/vdz1"])
def test_lines_of_an_admin_stay_as_they_are(mount: str, container: str) -> None:
    host = Host(LINES[0].format(mount), LINES[1].format(container))
    before = dict(host.texts)
    assert host.run() == []
    assert host.texts == before
    assert host.run(layout(fstab_options="nofail,noatime", luks={"crypttab_options": "discard", "key_file": "/etc/keys/a"})) == []
    # What is asked for beside that comes to them.
    assert host.run(layout(fstab_options="nodev", luks={"crypttab_options": "no-read-workqueue"})) == [
        "/etc/fstab",
        "/etc/crypttab",
        MEMORY,
    ]
    assert host.texts["/etc/fstab"].splitlines() == [
        *("# mine", f"{mount} /srv ext4 noatime,nofail,x-systemd.device-timeout=30,nodev 0 0"),
    ]
    assert host.options()[1] == "/etc/keys/a luks,discard,header=/etc/h,nofail,no-read-workqueue"


def test_an_admins_keyscript_and_tpm_stay() -> None:
    host = Host("UUID=u-fs /srv ext4 defaults 0 2\n", "data UUID=u-luks none luks,keyscript=/lib/x,tpm2-device=auto\n")
    assert host.run() == []
    assert host.run(layout(luks={"unlock": [{"method": "passphrase"}]})) == []


def test_a_run_with_fewer_variables_changes_nothing_and_one_that_gives_them_again_does() -> None:
    host = Host()
    given = {"nofail": ("/srv",), "crypttab_options": "luks,discard", "key_files": {"data": "/etc/keys/a"}}
    assert host.run(**given) == ["/etc/fstab", "/etc/crypttab", MEMORY]
    assert host.options() == ("defaults,nofail", "/etc/keys/a luks,discard,nofail")
    assert host.run(**given) == []
    assert host.run() == []
    assert host.options() == ("defaults,nofail", "/etc/keys/a luks,discard,nofail")
    assert host.run(nofail=(), crypttab_options="luks") == ["/etc/fstab", "/etc/crypttab", MEMORY]
    assert host.options() == ("defaults", "/etc/keys/a luks")
    assert host.run() == []
    assert host.run(key_files={"data": "none"}) == ["/etc/crypttab", MEMORY]
    assert host.options() == ("defaults", "none luks")


def test_an_option_takes_back_what_it_gave_and_nothing_that_was_there_before() -> None:
    host = Host("UUID=u-fs /srv ext4 nofail,noatime 0 2\n", "data UUID=u-luks none luks,discard\n")
    assert host.run(nofail=("/srv",), crypttab_options="luks,discard,no-read-workqueue") == ["/etc/crypttab", MEMORY]
    assert host.run(nofail=(), crypttab_options="luks") == ["/etc/crypttab", MEMORY]
    assert host.options() == ("nofail,noatime", "none luks,discard")
    # For that there is a word.
    assert host.run(layout(fstab_options="-nofail"), crypttab_options="luks,-discard")[:2] == ["/etc/fstab", "/etc/crypttab"]
    assert host.options() == ("noatime", "none luks")
    assert host.run(layout(fstab_options="-nofail"), crypttab_options="luks,-discard") == []


@pytest.mark.parametrize("cut", range(4))
def test_a_run_that_was_cut_off_can_be_run_again_and_taken_back(cut: int) -> None:
    given: dict[str, t.Any] = {"nofail": ("/srv",), "crypttab_options": "luks,discard"}
    plain = ("defaults", "none luks")
    host = Host("UUID=u-fs /srv ext4 defaults 0 2\n", "data UUID=u-luks none luks\n")
    host.run(**given, cut=cut)
    host.run(**given)
    assert host.options() == ("defaults,nofail", "none luks,discard,nofail")
    host.run(nofail=(), crypttab_options="luks", cut=cut)
    # The next run may have no options at all, which changes nothing.
    host.run()
    host.run(nofail=(), crypttab_options="luks")
    assert host.options() == plain
    assert host.run(nofail=(), crypttab_options="luks") == []


def test_lines_that_were_lost_come_back_as_they_were() -> None:
    host = Host()
    host.run(layout(fstab_options="noatime"), nofail=("all",), key_file="/etc/keys/a", crypttab_options="luks,discard")
    lines = dict(host.texts)
    host.texts |= {"/etc/fstab": "", "/etc/crypttab": ""}
    assert host.run() == ["/etc/fstab", "/etc/crypttab"]
    assert host.texts == lines


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "[" * 100_000, '{"mounts": 5}', '{"mounts": {"/srv": []}, "containers": {"data": {"given": {"a": 5}}}}']
)
def test_what_is_no_memory_is_none(text: str) -> None:
    host = Host("UUID=u-fs /srv ext4 noatime 0 2\n", "data UUID=u-luks none luks\n")
    host.texts[MEMORY] = text
    assert host.run() == []
    assert host.options() == ("noatime", "none luks")


def test_options_of_another_file_system_do_not_stay() -> None:
    host = Host("UUID=u-fs /srv xfs nofail,logbufs=8,x-mine 0 0\n", "data UUID=u-luks none luks\n")
    assert host.run() == ["/etc/fstab", MEMORY]
    assert host.texts["/etc/fstab"] == "UUID=u-fs /srv ext4 nofail,x-mine 0 2\n"
    auto = Host("UUID=u-fs /srv auto nofail,data=journal 0 0\n", "data UUID=u-luks none luks\n")
    assert auto.run() == []


def test_a_file_system_that_was_made_again_keeps_its_settings() -> None:
    """The UUID of before follows from a plan, and nothing has it any more."""
    host = Host("UUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10 /srv ext4 noatime,nofail 0 0\n", "data UUID=u-luks none luks\n")
    assert host.run() == ["/etc/fstab", MEMORY]
    assert host.texts["/etc/fstab"] == "UUID=u-fs /srv ext4 noatime,nofail 0 0\n"


def test_where_a_setting_comes_from_is_told() -> None:
    host = Host("UUID=u-fs /srv ext4 noatime 0 2\n", "data UUID=u-luks /etc/keys/a luks\n")
    host.run(nofail=("/srv",))
    found = host_files(layout(fstab_options="nodev"), Settings(crypttab_options="luks,discard"), host.texts)
    assert found["mounts"][0]["origins"] == {"noatime": "fstab", "nofail": "nofail of an earlier run", "nodev": "the schema"}
    assert found["containers"][0]["origins"] == {
        **{"/etc/keys/a": "crypttab", "luks": "crypttab_options", "nofail": "nofail of an earlier run", "discard": "crypttab_options"}
    }


@pytest.mark.parametrize("comment", ["# mine", "### mine", "### /etc/crypttab", "file /etc/fstab eA=="])
def test_no_comment_hides_a_line(comment: str) -> None:
    host = Host(f"{comment}\nUUID=u-fs /srv ext4 noatime 0 2\n", f"{comment}\ndata UUID=u-luks /etc/keys/a luks\n")
    assert host.run() == []
