# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of crypttab: what has no form that all its readers know is refused in every field, and what is written is read as it is meant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.crypttab import (
    Container,
    read_containers,
    why_no_key_file,
    why_no_options,
    with_containers,
)

SOUND = Container("data", "UUID=8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f11", "/etc/keys/data.key", "luks,discard")
BAD = [" ", "\t", "\n", "\r", "\x00", "\x1b", "\x7f", '"', "'", "\\", "\\040", "\v", "\f", "\u2028", "\u00a0"]


@pytest.mark.parametrize("letter", BAD)
@pytest.mark.parametrize("field", ["name", "source", "key_file", "options"])
def test_what_has_no_form_is_refused_in_every_field(field: str, letter: str) -> None:
    for text in (f"a{letter}b", f"a{letter}", f"{letter}a"):
        with pytest.raises(ValueError, match="crypttab"):
            with_containers("", [replace(SOUND, **{field: text})])


@pytest.mark.parametrize("field", ["name", "source", "key_file", "options"])
def test_no_field_is_a_comment(field: str) -> None:
    with pytest.raises(ValueError, match="crypttab"):
        with_containers("", [replace(SOUND, **{field: "#a"})])


@pytest.mark.parametrize("field", ["name", "source"])
def test_name_and_device_are_there(field: str) -> None:
    with pytest.raises(ValueError, match="is empty"):
        with_containers("", [replace(SOUND, **{field: ""})])


@pytest.mark.parametrize("container", [SOUND, replace(SOUND, key_file="", options=""), replace(SOUND, source="/dev/disk/by-id/a#b")])
def test_what_is_written_is_read_and_written_once(container: Container) -> None:
    text = with_containers("# mine\nother UUID=1 none luks\n", [container])
    assert [line.split()[0] for line in text.splitlines()] == ["#", "other", "data"]
    assert read_containers(text)[-1].says(container)
    assert with_containers(text, [container]) == text


@pytest.mark.parametrize("path", ["relative", "/", "/a/../b", "/a b", "/a\nb", "/a/", "", "-", "/a\\b"])
def test_a_key_file_is_an_absolute_path(path: str) -> None:
    assert why_no_key_file(path)


@pytest.mark.parametrize(
    "options", ["swap", "plain", "tmp=ext4", "luks,swap", "unknown", "discard;x", "discard=a b", "header=/a\nb", "keyscript=$(x)"]
)
def test_options_that_make_or_run_something_else_are_refused(options: str) -> None:
    assert why_no_options(options)


@pytest.mark.parametrize("options", ["luks", "luks,discard", "x-systemd.device-timeout=30", "-discard", "header=/etc/a.img"])
def test_options_of_containers_are_taken(options: str) -> None:
    assert why_no_options(options) is None
