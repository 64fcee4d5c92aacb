# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Chromium, headless, with a profile of its own and no network: pages measured, photographed, and listened to."""

from __future__ import annotations

import html
import json
import pathlib
import re
import struct
import subprocess
import typing as t
import zlib

ROOT = pathlib.Path(__file__).parents[2]
SHOTS = ROOT / "tests" / "output" / "browser"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
PHONE = 390
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"


def chromium(profile: pathlib.Path, *arguments: str) -> str:
    command = ["chromium", *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def screenshot(profile: pathlib.Path, file: pathlib.Path, name: str, size: str, *flags: str) -> list[list[tuple[int, int, int]]]:
    SHOTS.mkdir(parents=True, exist_ok=True)
    target = SHOTS / f"{name}.png"
    target.unlink(missing_ok=True)
    chromium(profile, *flags, f"--screenshot={target}", f"--window-size={size}", file.as_uri())
    return pixels(target.read_bytes())


def in_frame(file: pathlib.Path, width: int, height: int) -> pathlib.Path:
    """Return a page that shows another one as wide as a phone does: the browser's own window does not get so narrow."""
    frame = file.with_name(f"{file.stem}-{width}.html")
    frame.write_text(f'<body style="margin:0"><iframe src="{file.name}" style="width:{width}px;height:{height}px;border:0"></iframe>')
    return frame


def measure(
    script: str, profile: pathlib.Path, page: pathlib.Path, width: int, *flags: str, height: int = 3000, budget: int = 2000
) -> t.Any:
    """Return the `result` that a script leaves in the page, shown at a width of so many pixels; `budget` is its time in milliseconds."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
    probe = page.with_name("probe.html")
    probe.write_text(
        text.replace("</body>", f"<script>{script}\nparent.document.title = document.title = JSON.stringify(result);</script></body>"),
        encoding="utf-8",
    )
    frame = in_frame(probe, width, height)
    dump = chromium(
        profile,
        *flags,
        "--allow-file-access-from-files",
        "--window-size=1400,3000",
        f"--virtual-time-budget={budget}",
        "--dump-dom",
        frame.as_uri(),
    )
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dump, re.DOTALL)[1]))


def pixels(png: bytes) -> list[list[tuple[int, int, int]]]:
    """Return the rows of an 8-bit RGB or RGBA image (PNG specification, section 9: filters 0 to 4)."""
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind = png[at + 4 : at + 8]
        chunks[kind] = chunks.get(kind, b"") + png[at + 8 : at + 8 + length]
        at += length + 12
    width, _height, _depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    step = {2: 3, 6: 4}[colours]
    data = zlib.decompress(chunks[b"IDAT"])
    above = bytearray(width * step)
    rows = []
    for start in range(0, len(data), width * step + 1):
        row = bytearray(data[start + 1 : start + 1 + width * step])
        for x in range(len(row)):
            left = row[x - step] if x >= step else 0
            up, corner = above[x], above[x - step] if x >= step else 0
            row[x] = (row[x] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[data[start]]) & 255
        rows.append([tuple(row[x : x + 3]) for x in range(0, len(row), step)])
        above = row
    return rows


def paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def console(profile: pathlib.Path, page: pathlib.Path) -> list[str]:
    """Return what the browser has to say of a page: errors, refusals, messages."""
    command = ["chromium", *FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr", "--log-level=0", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]
