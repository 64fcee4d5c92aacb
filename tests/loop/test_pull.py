# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/pull.yml on a loop device of this machine, by a Python without the libraries of the collection; the plan comes
from a server with https.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, new_disk, probe
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

ROOT = Path(__file__).parents[2]
RECAP = re.compile(r"^host1 +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=(\d+)", re.MULTILINE)
BROUGHT_BY_CORE = {"jinja2", "pyyaml"}


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, *_words: t.Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> t.Iterator[str]:
    """Give the URL of the folder `served`; its certificate is cert.pem."""
    (tmp_path / "served").mkdir()
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(tmp_path / "served")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    serving.socket = context.wrap_socket(serving.socket, server_side=True)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"https://localhost:{serving.server_address[1]}"
    serving.shutdown()
    serving.server_close()


class Host:
    """Pulls as its timer would."""

    def __init__(self, folder: Path, disk: str, url: str) -> None:
        self._folder, self._disk, self._url = folder, disk, url
        (folder / "missing").mkdir()
        for name in re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE):
            if name not in BROUGHT_BY_CORE:
                (folder / "missing" / f"{name.replace('-', '_')}.py").write_text("raise ImportError('is not installed')", encoding="utf-8")

    def pull(self, *options: str, **variables: t.Any) -> tuple[int, int, str]:
        """Return how many tasks have changed something, how many have failed, and all that was said."""
        given = {"bareon_from": self._url, "bareon_pulled": str(self._folder / "pulled"), "bareon_include": ["loop"]}
        # The mount point is below a folder of this test, and this machine's tables are not written.
        given |= {"bareon_devices": [self._disk], **variables}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        environment |= {
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
            "ANSIBLE_HOME": str(self._folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "PYTHONPATH": str(self._folder / "missing"),
            "SSL_CERT_FILE": str(self._folder / "cert.pem"),
        }
        command = [sys.executable, "-m", "ansible", "playbook", "--inventory", "host1,", "--connection", "local", "bareon.allocator.pull"]
        done = subprocess.run(
            [*command, *options, "--extra-vars", json.dumps(given)],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        recap = RECAP.search(done.stdout)
        assert recap is not None, done.stdout
        return int(recap[1]), int(recap[2]), done.stdout

    @property
    def report(self) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads((self._folder / "pulled/report/report.json").read_text(encoding="utf-8")))


def serve(folder: Path, disk: str, size: int, space: int = 300, unused: t.Sequence[str] = ()) -> str:
    """Put a plan of one partition on the server, with its digest, which is returned; `unused` are disks that have too little room."""
    facts = {"ram": 4096, "disks": [{"id": disk, "type": "ssd", "size": size}, *({"id": one, "type": "ssd", "size": 64} for one in unused)]}
    text = json.dumps(make_plan([{"id": "data", "type": "partition", "size": space, "fs_type": "ext4"}], facts))
    (folder / "served/host1.json").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "served/host1.json.sha256").write_text(f"{digest}  host1.json\n", encoding="utf-8")
    return digest


def test_a_host_pulls_its_plan_reports_and_applies_it(loops: Loops, tmp_path: Path, server: str) -> None:
    disk = new_disk(loops)
    size = int(subprocess.run(["blockdev", "--getsize64", disk], capture_output=True, text=True, check=True).stdout) // MIB
    digest = serve(tmp_path, disk, size)
    host = Host(tmp_path, disk, server)
    # In check mode it reports, and nothing else.
    changed, failed, text = host.pull("--check")
    assert (changed, failed) == (0, 0), text
    assert host.report["plan"] == digest
    assert [finding["state"] for finding in host.report["drift"]["findings"]] == ["differs"]
    assert "TYPE" not in probe(f"{disk}p1")
    changed, failed, text = host.pull()
    assert (changed, failed) == (1, 0), text
    assert probe(f"{disk}p1")["TYPE"] == "ext4"
    changed, failed, text = host.pull()
    assert (changed, failed) == (0, 0), text
    assert host.report["drift"] == {"state": "alike", "findings": []}
    # A finding that the host does not accept ends the run before anything is applied.
    serve(tmp_path, disk, size, space=400)
    changed, failed, text = host.pull(bareon_fail_on=["could_grow"])
    assert (changed, failed) == (0, 1), text
    # A plan that is torn is not taken; the one before stays.
    before = (tmp_path / "pulled/host1.json").read_bytes()
    (tmp_path / "served/host1.json").write_text("{}", encoding="utf-8")
    changed, failed, text = host.pull()
    assert (changed, failed) == (0, 1), text
    assert (tmp_path / "pulled/host1.json").read_bytes() == before


def test_a_plan_for_other_disks_is_refused(loops: Loops, tmp_path: Path, server: str) -> None:
    disk = new_disk(loops)
    serve(tmp_path, f"{disk}0", 2048)
    changed, failed, text = Host(tmp_path, disk, server).pull()
    assert (changed, failed) == (0, 1), text
    assert "TYPE" not in probe(f"{disk}p1")


def test_a_plan_is_refused_where_a_disk_that_it_leaves_empty_has_changed(loops: Loops, tmp_path: Path, server: str) -> None:
    disk, other = new_disk(loops), new_disk(loops, 64)
    size = int(subprocess.run(["blockdev", "--getsize64", disk], capture_output=True, text=True, check=True).stdout) // MIB
    host = Host(tmp_path, disk, server)
    serve(tmp_path, disk, size, unused=["/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"])
    _changed, failed, text = host.pull(bareon_devices=[disk, other])
    assert failed == 1, text
    assert "the plan was made for other disks" in text
    assert f"{other} (64 MiB)" in text, "the disk that is there in its place"
    assert "TYPE" not in probe(f"{disk}p1")
    serve(tmp_path, disk, size, unused=[other])
    changed, failed, text = host.pull(bareon_devices=[disk, other])
    assert (changed, failed) == (1, 0), text
    assert probe(f"{disk}p1")["TYPE"] == "ext4"
