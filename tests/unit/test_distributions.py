# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role disk_layout takes of distributions, also of those that no test runs on: paths, packages, and what makes the initramfs."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.bareon.allocator.plugins.filter.tools_to_initramfs_command import tools_to_initramfs_command
from ansible_collections.bareon.allocator.plugins.module_utils._storage.initramfs import INITRAMFS_TOOLS

VARIABLES = pathlib.Path(__file__).parents[2] / "roles" / "disk_layout" / "vars" / "main.yml"

DEBIAN, UBUNTU, FEDORA, RHEL = "debian ", "ubuntu debian", "fedora ", "rhel fedora"
ROCKY, LEAP, TUMBLEWEED, ARCH = "rocky rhel centos fedora", "opensuse-leap suse opensuse", "opensuse-tumbleweed opensuse suse", "arch "


def value(name: str, system: str, *lines: str, target: str = "") -> t.Any:
    """Return a variable of the role on a host of which these lines were read."""
    loader = DataLoader()
    variables = loader.load_from_file(str(VARIABLES), trusted_as_template=True)
    read = "\n".join([f"system {system}", f"target {target or system}", *lines])
    given = {"disk_layout_host": {"stdout": read}, "__disk_layout_needed_tools": ["sfdisk", "mkfs.btrfs"]}
    return Templar(loader=loader, variables={**variables, **given}).template(variables[name])


@pytest.mark.parametrize("system", [FEDORA, RHEL, ROCKY, LEAP, TUMBLEWEED, ARCH])
def test_only_debian_has_mdadm_conf_in_a_folder(system: str) -> None:
    assert value("__disk_layout_mdadm_conf", system) == "/etc/mdadm.conf"
    assert [value("__disk_layout_mdadm_conf", debian) for debian in (DEBIAN, UBUNTU)] == ["/etc/mdadm/mdadm.conf"] * 2


def test_a_new_system_has_the_paths_of_its_own_distribution() -> None:
    assert value("__disk_layout_mdadm_conf", DEBIAN, target=ROCKY) == "/etc/mdadm.conf"
    assert value("__disk_layout_mdadm_conf", ROCKY, target=DEBIAN) == "/etc/mdadm/mdadm.conf"


@pytest.mark.parametrize(
    ("system", "btrfs", "sfdisk"),
    [
        (DEBIAN, "btrfs-progs", "fdisk"),
        (UBUNTU, "btrfs-progs", "fdisk"),
        (FEDORA, "btrfs-progs", "util-linux"),
        (ARCH, "btrfs-progs", "util-linux"),
        (LEAP, "btrfsprogs", "util-linux"),
        (TUMBLEWEED, "btrfsprogs", "util-linux"),
    ],
)
def test_packages_are_called_as_the_distribution_calls_them(system: str, btrfs: str, sfdisk: str) -> None:
    packages = value("__disk_layout_packages", system)
    assert (packages["mkfs.btrfs"], packages["sfdisk"], packages["lvm"]) == (btrfs, sfdisk, "lvm2")
    assert ("systemd-cryptsetup" in packages) == ("debian" in system)


@pytest.mark.parametrize("system", [RHEL, ROCKY])
def test_what_a_distribution_has_no_package_of_is_named(system: str) -> None:
    assert value("__disk_layout_unavailable_tools", system) == ["mkfs.btrfs"]
    assert value("__disk_layout_missing_packages", system) == ["util-linux"]
    assert value("__disk_layout_unavailable_tools", system, "tool /usr/sbin/mkfs.btrfs") == []


@pytest.mark.parametrize(
    ("tools", "command"),
    [
        (["lvm", "update-initramfs"], ["update-initramfs", "-u"]),
        (["dracut"], ["dracut", "--regenerate-all", "--force"]),
        (["mkinitcpio", "dracut"], ["dracut", "--regenerate-all", "--force"]),
        (["mkinitcpio"], ["mkinitcpio", "-P"]),
        (["lvm"], []),
    ],
)
def test_the_initramfs_is_made_by_the_program_that_is_there(tools: list[str], command: list[str]) -> None:
    assert tools_to_initramfs_command(tools) == command


def test_what_an_image_is_compressed_with_is_a_package_everywhere() -> None:
    assert [value("__disk_layout_packages", system)["xz"] for system in (DEBIAN, UBUNTU, FEDORA, ARCH)] == [
        "xz-utils",
        "xz-utils",
        "xz",
        "xz",
    ]


def test_all_that_is_asked_for_is_looked_for() -> None:
    looked_for = value("__disk_layout_known_tools", DEBIAN)
    assert {"mkfs.btrfs", "systemd-cryptsetup", "restorecon", "systemd"} <= set(looked_for)
    assert {tool.name for tool in INITRAMFS_TOOLS} <= set(looked_for)
    assert len(looked_for) == len(set(looked_for))
