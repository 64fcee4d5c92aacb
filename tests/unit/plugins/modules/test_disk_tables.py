# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import functools
import json
import pathlib
import stat

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.bareon.allocator.plugins.module_utils._layout import lock
from ansible_collections.bareon.allocator.plugins.module_utils._layout.lock import only_writer
from ansible_collections.bareon.allocator.plugins.modules import disk_tables

MOUNT = {"src": "UUID=1", "path": "/srv", "fstype": "xfs", "opts": "defaults,nofail", "origins": {"nofail": "nofail"}}
CONTAINER = {"name": "data", "source": "UUID=2", "key_file": "/etc/keys/a", "options": "luks"}
ARRAY = {"name": "/dev/md/data", "uuid": "1:2:3:4"}
WANTED = {"fstab": [MOUNT], "crypttab": [CONTAINER], "arrays": [ARRAY], "boot_settings": "{}\n"}
LINES = {
    "etc/fstab": "UUID=1 /srv xfs defaults,nofail 0 0\n",
    "etc/crypttab": "data UUID=2 /etc/keys/a luks\n",
    "etc/mdadm/mdadm.conf": "ARRAY /dev/md/data metadata=1.2 UUID=1:2:3:4\n",
    "etc/bareon/boot_settings.json": "{}\n",
}


def run(capsys, root, **arguments):
    with patch_module_args({"root": str(root), **arguments}), pytest.raises(SystemExit):
        disk_tables.main()
    return json.loads(capsys.readouterr().out)


def files(root):
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*")) if path.is_file()}


def test_all_tables_are_written_once(capsys, tmp_path):
    seen = run(capsys, tmp_path, **WANTED, _ansible_check_mode=True, _ansible_diff=True)
    assert list(tmp_path.iterdir()) == []
    first, second = run(capsys, tmp_path, **WANTED, _ansible_diff=True), run(capsys, tmp_path, **WANTED)
    assert {**first, "invocation": None} == {**seen, "invocation": None}
    assert first["tables"] == [f"/{name}" for name in LINES]
    assert first["diff"][-1]["prepared"] == "/srv: nofail from nofail\n"
    assert (second["changed"], second["tables"], second["diff"]) == (False, [], [])
    assert files(tmp_path) == LINES
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in LINES}
    assert modes == {name: 0o600 if name.endswith(".json") else 0o644 for name in LINES}


def test_no_line_of_another_run_is_lost(capsys, tmp_path, monkeypatch):
    """The other run comes between the reading and the writing of this one."""
    monkeypatch.setattr(lock.os, "geteuid", lambda: 0)
    monkeypatch.setattr(disk_tables, "only_writer", functools.partial(only_writer, path=str(tmp_path / "lock"), patience=0))
    root, others = tmp_path / "root", []
    write, other = disk_tables.replace_file, {"fstab": [{"src": "UUID=9", "path": "/other", "fstype": "xfs"}]}

    def write_late(*arguments):
        monkeypatch.setattr(disk_tables, "replace_file", write)
        others.append(run(capsys, root, **other))
        write(*arguments)

    monkeypatch.setattr(disk_tables, "replace_file", write_late)
    run(capsys, root, fstab=[MOUNT])
    assert others[0]["failed"]
    assert "another run of disk_tables is active" in others[0]["msg"]
    assert run(capsys, root, **other)["changed"]
    assert [line.split()[1] for line in files(root)["etc/fstab"].splitlines()] == ["/srv", "/other"]


def test_the_diff_names_swap_by_its_source_and_containers_by_their_names(capsys, tmp_path):
    swap = {"src": "UUID=3", "path": "none", "fstype": "swap", "origins": {"defaults": "the layout"}}
    made = run(capsys, tmp_path, fstab=[swap], crypttab=[{**CONTAINER, "origins": {"luks": "crypttab"}}], _ansible_diff=True)
    assert made["diff"][-1]["prepared"] == "UUID=3: defaults from the layout\ndata: luks from crypttab\n"


def test_lines_of_others_modes_and_copies_stay(capsys, tmp_path):
    (tmp_path / "etc").mkdir()
    before = {"etc/fstab": "### mine\nUUID=9 / ext4 noatime 0 1", "etc/crypttab": "other UUID=8 none luks\ndata UUID=7 none luks\n"}
    for name, text in before.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o640)
    made = run(capsys, tmp_path, **WANTED, backup=True)
    found = files(tmp_path)
    assert found["etc/fstab"] == f"{before['etc/fstab']}\n{LINES['etc/fstab']}"
    assert found["etc/crypttab"] == f"other UUID=8 none luks\n{LINES['etc/crypttab']}"
    assert [pathlib.Path(copy).read_text(encoding="utf-8") for copy in made["backup_files"]] == list(before.values())
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in before} == {0o640}


def test_what_an_image_had_mounted_is_put_out_of_action(capsys, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text(
        "LABEL=image / ext4 x 0 1\n\ttmpfs /tmp tmpfs x 0 0\n  UUID=1 /srv xfs x\n# UUID=5 /y\n", encoding="utf-8"
    )
    run(capsys, tmp_path, fstab=[MOUNT], image_sources=["UUID=1"])
    assert files(tmp_path)["etc/fstab"].splitlines() == [
        *("# of the image: LABEL=image / ext4 x 0 1", "\ttmpfs /tmp tmpfs x 0 0", LINES["etc/fstab"].strip(), "# UUID=5 /y"),
    ]
    assert run(capsys, tmp_path, fstab=[MOUNT], image_sources=["UUID=1"])["changed"] is False


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ({"crypttab": [{**CONTAINER, "key_file": "/etc/k\nroot UUID=0 none"}]}, "key file"),
        ({"crypttab": [{**CONTAINER, "key_file": "/etc/my keys/a #b"}]}, "key file"),
        ({"crypttab": [{**CONTAINER, "name": "#data"}]}, "name"),
        ({"crypttab": [{**CONTAINER, "options": 'luks,x="a b"'}]}, "options"),
        ({"arrays": [{**ARRAY, "name": "/dev/md/a b"}]}, "name"),
        ({"fstab": [{**MOUNT, "path": "/a\0b"}]}, "mount point"),
        ({"fstab": [{**MOUNT, "opts": ""}]}, "options"),
    ],
)
def test_what_has_no_form_is_refused_before_anything_is_written(capsys, tmp_path, what, fault):
    result = run(capsys, tmp_path, **{**WANTED, **what})
    assert result["failed"]
    assert f"the {fault} of" in result["msg"]
    assert list(tmp_path.iterdir()) == []


def test_links_of_another_system_lead_to_places_in_it(capsys, tmp_path):
    root = tmp_path / "target"
    (root / "etc").mkdir(parents=True)
    (tmp_path / "host").mkdir()
    (root / "etc/fstab").symlink_to("/real/../table")
    (root / "etc/crypttab").symlink_to("../../../../host/crypttab")
    (root / "etc/mdadm").symlink_to(f"{tmp_path}/host")
    run(capsys, root, **WANTED)
    assert (root / "table").read_text(encoding="utf-8") == LINES["etc/fstab"]
    assert (root / "host/crypttab").read_text(encoding="utf-8") == LINES["etc/crypttab"]
    assert list((tmp_path / "host").iterdir()) == []
    (root / "etc/loop").symlink_to("loop")
    assert "too many links" in run(capsys, root, arrays=[ARRAY], mdadm_conf="/etc/loop")["msg"]


def test_what_is_documented_is_returned(capsys, tmp_path):
    tree = ast.parse(pathlib.Path(disk_tables.__file__).read_text(encoding="utf-8"))
    (text,) = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "RETURN"]
    assert set(yaml.safe_load(text)) == set(run(capsys, tmp_path)) - {"changed", "diff", "invocation"}
