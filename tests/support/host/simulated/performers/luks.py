# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LUKS containers of a simulated host."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import (
    CloseMapping,
    FormatLuks,
    OpenLuks,
    RenameMapping,
    ResizeLuks,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import LUKS_START
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import (
    Performers,
    Pieces,
    clean_block,
    need,
    unused_block,
)


def _format_luks(host: SimulatedHost, step: FormatLuks) -> Pieces:
    block = clean_block(host, step.device)
    host.media.write(block, 16384, "crypto_LUKS", (step.uuid, "half"))
    yield
    key = new_uuid()
    host.media.sign(block, "crypto_LUKS", (step.uuid, key))
    yield


def _open_luks(host: SimulatedHost, step: OpenLuks) -> Pieces:
    block = unused_block(host, step.device)
    need(step.name not in host.mappings, f"{step.name} is there")
    payload, _offsets = host.media.signatures(block)["crypto_LUKS"]
    need(payload[1] != "half", "the header is broken")
    host.mappings[step.name], host.mapping_keys[step.name] = block.name, payload[1]
    host.mapping_sizes[step.name] = block.size - LUKS_START
    yield


def _close_mapping(host: SimulatedHost, step: CloseMapping) -> Pieces:
    unused_block(host, f"/dev/mapper/{step.name}")
    del host.mappings[step.name], host.mapping_keys[step.name], host.mapping_sizes[step.name]
    yield


def _resize_luks(host: SimulatedHost, step: ResizeLuks) -> Pieces:
    host.mapping_sizes[step.name] = host.blocks()[host.mappings[step.name]].size - LUKS_START
    yield


def _rename_mapping(host: SimulatedHost, step: RenameMapping) -> Pieces:
    need(step.name not in host.mappings, f"{step.name} is there")
    for names in (host.mappings, host.mapping_keys, host.mapping_sizes):
        names[step.name] = names.pop(step.old)  # type: ignore[attr-defined, assignment]
    for below in list(host.mappings):
        if host.mappings[below] == step.old:
            host.mappings[below] = step.name
    yield


PERFORMERS: Performers = {
    RenameMapping: _rename_mapping,
    FormatLuks: _format_luks,
    OpenLuks: _open_luks,
    CloseMapping: _close_mapping,
    ResizeLuks: _resize_luks,
}
