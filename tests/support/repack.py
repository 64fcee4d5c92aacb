# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pack an archive anew, as small as it gets and the same bytes from the same commit: repack.py ARCHIVE.tar.gz SECONDS

ARCHIVE.tar.gz is replaced: Galaxy takes nothing else. ARCHIVE.tar.xz is written beside it, which `ansible-galaxy` installs just as
well, and which is a fifth smaller. SECONDS since 1970 become the time of all members.

Members are in the order of FILES.json, since `ansible-galaxy` unpacks in that order, and going back in a compressed file means
reading it again from its start. That order is the one of names, not the one in which a file system happened to list them.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import sys
import tarfile
import typing as t
from pathlib import Path

# Text has no words of four bytes, which is what pb is for; a letter depends on all of the one before it, which is what lc is for.
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def written(data: t.Any) -> bytes:
    """Return data as `ansible-galaxy collection build` writes it."""
    return json.dumps(data, indent=True).encode()


def in_order_of_names(content: dict[str, bytes]) -> dict[str, bytes]:
    """Return the contents of the archive's members by name, in the order of FILES.json, which names them in order."""
    files, manifest = json.loads(content["FILES.json"]), json.loads(content["MANIFEST.json"])
    files["files"].sort(key=lambda entry: str(entry["name"]))
    listed = written(files)
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(listed).hexdigest()
    names = (entry["name"] for entry in files["files"] if entry["name"] != ".")
    return {"MANIFEST.json": written(manifest), "FILES.json": listed, **{name: content[name] for name in names}}


def normalised(archive: Path, seconds: int) -> bytes:
    """Return an archive of the same members, not compressed, in the order of names, made at the given time by nobody in particular."""
    plain = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as new:
        content = {member.name: file.read() if (file := old.extractfile(member)) else b"" for member in old.getmembers()}
        for name, data in in_order_of_names(content).items():
            member = old.getmember(name)
            member.size, member.mtime, member.pax_headers = len(data), seconds, {}
            member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
            new.addfile(member, io.BytesIO(data))
    return plain.getvalue()


def as_xz(plain: bytes) -> bytes:
    """Return it as an .xz file that any program reads."""
    return lzma.compress(plain, filters=XZ)


def as_gz(plain: bytes) -> bytes:
    """Return it as a .gz file that any program reads, smaller than gzip makes it."""
    import zopfli.gzip  # which only those have who make a release

    return zopfli.gzip.compress(plain, numiterations=5)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    packed = normalised(path, int(sys.argv[2]))
    path.with_suffix(".xz").write_bytes(as_xz(packed))
    path.write_bytes(as_gz(packed))
