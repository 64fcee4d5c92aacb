# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which database a URL names, and which of its parts may be shown.

People put passwords where a URL has a place for them, and where it has none: unquoted, in the query, behind a forgotten `//`. So nothing
is shown because it looks harmless; only the parts that are known to be no secret are, and what is no URL is never repeated.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import kind_of
from ..._common.lasting import container_mark
from ..._common.libraries import sa
from ..._common.paths import user_folder, why_no_path

ENVIRONMENT = "BAREON_DATABASE"
_DATA = "XDG_DATA_HOME"
DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}

_HIDDEN = "***"
_EXAMPLES = "sqlite:////var/lib/bareon.sqlite or postgresql://user@host/name"
_QUOTE = "special characters of a password are written as % and two digits: %40 for @, %2F for /, %3A for :"
_PLAIN = re.compile(r"[\w.$-]{1,255}", re.ASCII)
_PLAIN_HOST = re.compile(r"[\w.-]{1,255}|[0-9a-fA-F:.]{2,45}(%[\w.-]{1,16})?", re.ASCII)
_PLAIN_PATH = re.compile(r"[\w./ +-]{1,4096}", re.ASCII)
_KNOWN_KEYS = re.compile(
    "application_name|charset|connect_timeout|db|host|mode|options|passwd|password|port|ssl(cert|key|mode|password|rootcert)|ssl_(ca|cert|key)"
    "|timeout|unix_socket|uri|user"
)
_FILES_OF_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "sslsni", "ssl_min_protocol_version")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "sqlite": ("timeout", "uri", "mode", "cache", "immutable", "nolock"),
    "postgresql": (
        *("user", "password", "host", "hostaddr", "port", "dbname", "application_name", "options", "connect_timeout", "client_encoding"),
        *("target_session_attrs", "channel_binding", "tcp_user_timeout", "keepalives", "keepalives_idle", "keepalives_interval"),
        *("keepalives_count", "krbsrvname", "gssencmode", *_FILES_OF_TLS),
    ),
    "mysql": (
        *("user", "passwd", "password", "host", "port", "db", "unix_socket", "charset", "use_unicode", "connect_timeout", "read_timeout"),
        *("write_timeout", "ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher", "ssl_check_hostname", "ssl_disabled"),
        *("ssl_verify_cert", "ssl_verify_identity"),
    ),
}
_OPTIONS["mariadb"] = _OPTIONS["mysql"]
"""What the query of a URL may set: the server, the user, how it is trusted, and how long to wait.

Drivers take more: files of options that they read and quote, files that a server may ask for, statements, classes of Python.
"""
_REFUSED_KEYS = re.compile(
    "allow_local_infile|auth_plugin_map|autocommit|client_flag|conv|cursor_factory|cursorclass|defer_connect|detect_types|factory|init_command"
    "|isolation_level|load_extension|local_infile|passfile|plugin|program_name|read_default_file|read_default_group|row_factory|server_public_key"
    "|service|servicefile|sql_mode|vfs"
)
"""Those of them that a message may repeat, since they are no secrets."""
_LEAST_SECRET = 3
"""What is as long as this, in a URL's query, may be a password under a key that nobody foresaw, or a piece of one."""


def default_database() -> str:
    """Return the URL of the environment, else that of an SQLite file below the user's data directory. Raises InputError without a home."""
    configured = os.environ.get(ENVIRONMENT)
    if configured:
        return configured
    data = user_folder(_DATA, ".local/share")
    if data is None:
        raise _refusal(f"is missing, and without HOME there is no default; name a database with this option or with {ENVIRONMENT}")
    return file_url(data / "bareon" / "providers.sqlite")


def file_url(path: Path) -> str:
    """Return the URL of an SQLite file, whatever its path: in a URL, `?` begins options, and `%41` is an A."""
    return sa.URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def is_default(database: str | None) -> bool:
    """Whether neither the task nor the environment names a database, so that it is the file below the user's data directory."""
    return not database and not os.environ.get(ENVIRONMENT)


def why_default_is_lost() -> str:
    """Return why a file that is made below the user's data directory would be gone with the job; empty where it stays, or was chosen."""
    if os.path.isabs(os.environ.get(_DATA, "")):
        return ""
    mark = container_mark()
    return f"this is a container ({mark})" if mark else ""


def parse_database(database: str | None) -> sa.URL:
    """Return the URL of a database, its driver being the one the collection is tested with; None or empty means the default one.

    Raises InputError, which says nothing of what was given.
    """
    given = database or default_database()
    if not isinstance(given, str):
        raise _refusal(f"is {kind_of(given)}; must be a URL such as {_EXAMPLES}")
    try:
        url = sa.make_url(given)
    except sa.exc.ArgumentError:
        hint = f"; a file is written sqlite:///{Path(given).absolute()}" if _PLAIN_PATH.fullmatch(given) and "/" in given else ""
        raise _refusal(f"is not a URL such as {_EXAMPLES}{hint}") from None
    except ValueError:
        raise _refusal(f"has a port that is not a number; {_QUOTE}") from None
    backend = url.get_backend_name()
    if backend not in DRIVERS:
        raise _refusal("has a scheme that is not supported; use sqlite, postgresql or mariadb")
    # The path of a file may have an @, but none before a host, which no file has.
    server_like = backend != "sqlite" or "@" in _authority(given)
    if server_like and (url.password == "" or _has_stray_at(given)):
        raise _refusal(f"has an @ where none can be, or an empty password; {_QUOTE}")
    if backend != "sqlite" and url.host and not _PLAIN_HOST.fullmatch(url.host):
        raise _refusal(f"has a host that cannot be one; {_QUOTE}")
    _refuse_options(url, backend)
    if backend == "sqlite" and (says := why_no_path(url.database or "")):
        raise _refusal(says)
    if url.drivername == backend or backend in {"mysql", "mariadb"}:
        url = url.set(drivername=DRIVERS[backend])
    try:
        url.get_dialect()
    # SQLAlchemy splits a second + as well.
    except (sa.exc.ArgumentError, ValueError):
        raise _refusal(f"names a driver that SQLAlchemy does not know; leave it out, as in {_EXAMPLES}") from None
    except ImportError:
        # Opening the database reports which library is missing.
        pass
    return url


def _refuse_options(url: sa.URL, backend: str) -> None:
    """Raise InputError for options of the driver that a URL must not set; one that may be a misplaced secret is not repeated."""
    unknown = [key for key in url.query if key not in _OPTIONS[backend]]
    if unknown:
        named = sorted(key for key in unknown if _REFUSED_KEYS.fullmatch(key))
        what = f"the option {' and '.join(named)}, which is not taken" if named else "an option that is not taken"
        raise _refusal(f"has {what}; a URL of {backend} may have {', '.join(_OPTIONS[backend])}")


def _has_stray_at(given: str) -> bool:
    """Return whether an @ stands elsewhere than once before the host; what follows it, perhaps of a password, is read as the host."""
    rest, authority = given.partition("://")[2], _authority(given)
    return authority.count("@") > 1 or "@" in rest.removeprefix(authority)


def _authority(given: str) -> str:
    return re.split("[/?#]", given.partition("://")[2], maxsplit=1)[0]


def describe(url: sa.URL) -> str:
    """Return a URL as all messages, logs and results show it: without its password, and without what could be a misplaced one."""
    backend = url.get_backend_name()
    driver = url.drivername if url.drivername in DRIVERS.values() else backend
    rest = "?..." if url.query else ""
    if backend == "sqlite":
        return f"{driver}://{'/' + url.database.partition('?')[0] if url.database else ''}{rest}"
    user = f"{_shown(url.username)}@" if url.username else ""
    password = f"{_shown(url.username)}:{_HIDDEN}@" if url.password is not None else user
    host = f"[{url.host}]" if url.host and ":" in url.host else url.host or ""
    port = f":{url.port}" if url.port is not None else ""
    name = f"/{_shown(url.database)}" if url.database else ""
    return f"{driver}://{password}{host}{port}{name}{rest}"


def without_secrets(text: str, url: sa.URL) -> str:
    """Return what a driver says, with whatever in it could be a password of the URL left out."""
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _refusal(says: str) -> InputError:
    return InputError([Mistake("database", says)])


def _shown(part: str | None) -> str:
    return part if part and _PLAIN.fullmatch(part) else _HIDDEN


def _secrets(url: sa.URL) -> set[str]:
    given = [str(url.password)] if url.password else []
    given += [part for part in (url.username, url.database) if part and url.get_backend_name() != "sqlite" and _shown(part) == _HIDDEN]
    for values in url.query.values():
        given += [value for value in ([values] if isinstance(values, str) else values) if len(value) >= _LEAST_SECRET]
    given += [key for key in url.query if not _KNOWN_KEYS.fullmatch(key) and len(key) >= _LEAST_SECRET]
    # Drivers say what they read, and some read words: what stands between these is gone then.
    words = [word for secret in given for found in (secret.split(), re.split(r"\W+", secret)) for word in found]
    given += [word for word in words if len(word) >= _LEAST_SECRET]
    return {form for secret in given for form in (secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret)) if form}
