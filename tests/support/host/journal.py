# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A command with a real systemd-journald of its own behind /dev/log: both are in a mount namespace that has another /run and /dev."""

from __future__ import annotations

import subprocess
import typing as t
from collections.abc import Mapping, Sequence
from pathlib import Path

JOURNALD = Path("/lib/systemd/systemd-journald")
_SCRIPT = """
set -eu
folder=$1; shift
mkdir "$folder/dev"
mount -t tmpfs -o mode=755 none "$folder/dev"
for name in null zero full random urandom tty; do
    touch "$folder/dev/$name"
    mount --bind "/dev/$name" "$folder/dev/$name"
done
for name in shm pts; do
    mkdir "$folder/dev/$name"
    mount --bind "/dev/$name" "$folder/dev/$name"
done
ln -s pts/ptmx "$folder/dev/ptmx"
ln -s /proc/self/fd "$folder/dev/fd"
ln -s /run/systemd/journal/dev-log "$folder/dev/log"
mount --rbind "$folder/dev" /dev
mount -t tmpfs -o mode=755 none /run
mkdir -p /run/systemd/journal
if [ -d /var/log/journal ]; then mount -t tmpfs none /var/log/journal; fi
JOURNALD 2>"$folder/journald" &
journald=$!
while [ ! -S /run/systemd/journal/dev-log ]; do
    kill -0 $journald || { cat "$folder/journald"; exit 99; }
    sleep 0.05
done
code=0
"$@" >"$folder/output" 2>&1 || code=$?
journalctl --sync
kill $journald
wait $journald || true
# Its files may be in one of two places.
for place in /run/log/journal /var/log/journal; do
    if [ -d $place ]; then journalctl --directory=$place --output=export --all >>"$folder/entries"; fi
done
exit $code
"""


class Logged(t.NamedTuple):
    """What a command gave: its exit code, its output, and the entries of the journal with all their fields."""

    code: int
    output: bytes
    entries: bytes


def logged(command: Sequence[str], folder: Path, cwd: Path, environment: Mapping[str, str]) -> Logged:
    """Run a command as root; the folder, which is created, keeps what it says and what it logs."""
    folder.mkdir()
    words = ["unshare", "--mount", "--propagation=private", "sh", "-c", _SCRIPT.replace("JOURNALD", str(JOURNALD)), "sh", str(folder)]
    done = subprocess.run([*words, *command], cwd=cwd, env=environment, capture_output=True, check=False)
    output, entries = ((folder / name).read_bytes() if (folder / name).exists() else b"" for name in ("output", "entries"))
    return Logged(done.returncode, output + done.stdout + done.stderr, entries)
