# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack an archive anew: smaller, and the same bytes from the same commit: repack.py ARCHIVE SECONDS

SECONDS since 1970 become the time of all members. Their order stays: `ansible-galaxy` unpacks in it, and going back in a
compressed file means reading it again from its start.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import zopfli.gzip


def repacked(archive: Path, seconds: int) -> bytes:
    """Return the archive's members, made at the given time, as gzip that any program reads."""
    plain = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=plain, mode="w") as new:
        for member in old.getmembers():
            member.mtime = seconds
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    return zopfli.gzip.compress(plain.getvalue(), numiterations=5)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_bytes(repacked(path, int(sys.argv[2])))
