# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of hosts are data: none of them may have the name of a variable that a play or a role reads as an option.

Ansible makes a variable of each fact, and a fact outranks role defaults, the inventory, and even some names of Ansible itself.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Mapping

from ...module_utils._data.errors import InputError, Mistake

DOCUMENTED = frozenset({"bareon_hardware", "bareon_node"})
"""The facts that modules of the collection return."""

PREFIXES = ("bareon_", "disk_layout_", "__disk_layout_", "group_moves_", "__group_moves_", "follow_")
"""What the names of options, and of results that plays and roles register, begin with."""
_OF_ANSIBLE = frozenset(
    {
        *("inventory_hostname", "inventory_hostname_short", "inventory_dir", "inventory_file", "group_names", "role_name", "role_path"),
        *("omit", "lookup", "query", "q", "now", "undef", "range", "dict", "namespace", "item"),
    }
)
"""Names of Ansible that a fact can hide: a host that is called otherwise, or that says what is left out, could choose files."""
SETTINGS = frozenset(
    {
        # Programs and folders of the controller, and what proves the host's identity.
        *("sftp_executable", "scp_executable", "sftp_batch_mode", "sshpass_prompt", "control_path", "control_path_dir"),
        *("private_key", "private_key_passphrase", "host_key_checking", "ssh_host_key_checking"),
        *(f"paramiko_{name}" for name in ("host", "port", "user", "pass", "password", "private_key_file", "proxy_command", "timeout")),
        *("paramiko_host_key_checking", "paramiko_use_rsa_sha2_algorithms"),
        # Folders and users of the host; where the connection is `local` or the host answers for another one, they are those of others.
        *("remote_tmp", "async_dir", "system_tmpdirs", "admin_users", "common_remote_group", "shell_allow_world_readable_temp"),
        *(f"{become}_{name}" for become in ("su", "sudo", "runas") for name in ("exe", "flags", "pass", "user")),
        *("su_prompt_l10n", "sudo_chdir"),
        # How Ansible runs modules.
        *("facts_modules", "facts_parallel", "package_use", "interpreter_python_fallback", "python_module_rlimit_nofile"),
        *("inject_invocation", "no_target_syslog", "syslog_facility", "target_log_info", "worker_session_isolation"),
        *("win_async_startup_timeout", "deprecation_warnings", "display_skipped_hosts", "delegated_vars"),
    }
)
"""Settings of Ansible, after `ansible_`, that it takes from a fact: it refuses others itself. Some say what runs on the controller."""
_ANSIBLE = "ansible_"
"""Ansible lists facts without it, and makes variables of them with it."""
_MOST_CHARACTERS = 80
_MOST_NAMES = 8


def host_of(variables: Mapping[str, t.Any]) -> str:
    """Return the name of a task's host for a message; `host` if a fact hides it."""
    hidden = "inventory_hostname" in (variables.get("ansible_facts") or {})
    return "host" if hidden else str(variables.get("inventory_hostname", "host"))


def refuse_facts(variables: Mapping[str, t.Any], options: Collection[str] = ()) -> None:
    """Raise InputError if facts among a host's variables have reserved names: those of `options`, of the collection or of Ansible."""
    facts = variables.get("ansible_facts") or {}
    if not isinstance(facts, Mapping):
        raise InputError([Mistake(host_of({}), "its facts are no mapping")])
    _refuse(
        host_of(variables),
        list(_reserved(facts, options, variables)),
        "has the name of a variable of the operator, and no fact may have it",
    )


def refuse_undocumented(host: str, result: Mapping[str, t.Any], documented: Collection[str], discovered: str | None = None) -> None:
    """Raise InputError for facts in a module's result that the module does not return.

    `discovered` is the fact that Ansible itself adds where the task had to search for the host's interpreter; None: it had not.
    """
    facts = result.get("ansible_facts", {})
    if not isinstance(facts, Mapping):
        raise InputError([Mistake(f"{host}.ansible_facts", "is no mapping; the module did not write this answer")])
    _refuse(
        host,
        [str(key) for key in facts if key != discovered and key not in documented],
        "is no fact of the module; the module did not write this answer",
    )


def _refuse(host: str, names: list[str], says: str) -> None:
    mistakes = [Mistake(f"{host}.ansible_facts.{shortened(name)}", says) for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        mistakes.append(Mistake(f"{host}.ansible_facts", f"has {len(names) - _MOST_NAMES} more of these"))
    if mistakes:
        raise InputError(mistakes)


def _reserved(facts: Mapping[t.Any, t.Any], options: Collection[str], variables: Mapping[str, t.Any]) -> Iterator[str]:
    for key in facts:
        name = str(key).removeprefix(_ANSIBLE)
        # A fact that somebody calls `admin_users` is no setting; Ansible lists it as it lists `ansible_admin_users`.
        sets = name in SETTINGS and _ANSIBLE + name in variables
        if name not in DOCUMENTED and (sets or name in options or name in _OF_ANSIBLE or name.startswith(PREFIXES)):
            yield str(key)


def shortened(key: t.Any) -> str:
    """Return a name that a host has made up, so that a message can show it."""
    text = ascii(str(key))[1:-1]
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
