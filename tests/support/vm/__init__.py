# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Debian machine under QEMU: `machine` starts it and cuts its power, `monitor` speaks to QEMU, `ansible_run` plays playbooks on it."""
