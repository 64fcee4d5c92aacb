# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Contents that are copied onto another device, with the old one's signatures half cleared when a run is cut off."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import parse_signatures, signatures_command
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import CopyContents
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, digest, new_disk, run
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

SIZE = 40
MADE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "vfat": ("mkfs.vfat", "-F", "32"),
    "crypto_LUKS": ("cryptsetup", "luksFormat", "-q", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"),
}


def places(device: str) -> list[int]:
    """Return where signatures are, in the order in which wipefs erases them."""
    said = run(*signatures_command(device))
    return [offset for signature in parse_signatures(said) for offset in signature.offsets]


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", MADE)
def test_a_copy_is_not_made_again_of_what_was_half_cleared(loops: Loops, kind: str, backwards: bool, cut: int) -> None:
    """With none cleared yet it is: the old one may have been used meanwhile."""
    old, new = new_disk(loops, SIZE), new_disk(loops, SIZE)
    subprocess.run([*MADE[kind], old], input=b"a passphrase", check=True, capture_output=True)
    run("dd", f"if={old}", f"of={new}", "bs=1M", "conv=fsync", "status=none")
    whole, found = digest(new), places(old)
    for place in sorted(found, reverse=backwards)[:cut]:
        run("wipefs", "--force", "--quiet", "--offset", str(place), old)
    if cut == 0:
        with open(old, "r+b") as file:
            file.seek(20 * MIB)
            file.write(b"written meanwhile")
        whole = digest(old)
    CopyContents(old, new, SIZE * MIB, kind).run(LocalMachine())
    assert digest(new) == whole
    assert places(old) == []


def test_what_the_new_one_has_from_before_is_taken_for_no_copy(loops: Loops) -> None:
    """A second header of LUKS is left where the first MiB held no more than the first one."""
    old, new = new_disk(loops, SIZE), new_disk(loops, SIZE)
    subprocess.run([*MADE["ext4"], old], check=True, capture_output=True)
    subprocess.run([*MADE["crypto_LUKS"], "--luks2-metadata-size=4m", new], input=b"a passphrase", check=True, capture_output=True)
    run("dd", "if=/dev/zero", f"of={new}", "bs=1M", "count=1", "conv=fsync,notrunc", "status=none")
    assert places(new), "nothing is left"
    whole = digest(old)
    CopyContents(old, new, SIZE * MIB, "ext4").run(LocalMachine())
    assert digest(new) == whole
