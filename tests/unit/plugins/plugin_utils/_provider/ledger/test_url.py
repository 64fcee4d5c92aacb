# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""URLs of databases: no message tells a password, wherever somebody put it; what is no secret can still be recognised."""

from __future__ import annotations

import urllib.parse

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.url import describe, parse_database
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import SQLAlchemyError

NOWHERE = "127.0.0.1:1"
BACKENDS = ("postgresql", "mariadb", "mysql", "postgresql+psycopg", "mysql+pymysql")
KEYS = (
    "password",
    "passwd",
    "PASSWORD",
    "sslpassword",
    "ssl_key_password",
    "pasword",
    "pwd",
    "options",
    "user",
    "x",
    "connect_timeout",
    "port",
)

PLACES = (
    "{backend}://ann:{secret}@{nowhere}/ledger",
    "{backend}://ann:{secret}@127.0.0.1:port/ledger",
    "{backend}://:{secret}@{nowhere}/ledger",
    "{backend}://ann:{secret}{nowhere}/ledger",
    "{backend}://ann:{secret}@@{nowhere}/ledger",
    "{backend}://ann:p@{secret}@{nowhere}/ledger",
    "{backend}://ann%3A{secret}@{nowhere}/ledger",
    "{backend}://{nowhere}/ledger?{key}={secret}",
    "{backend}://{nowhere}/ledger?user=ann&{key}={secret}",
    "{backend}://{nowhere}/ledger?{secret}=1",
    "{backend}://{nowhere}/ledger&{key}={secret}",
    "{backend}://{nowhere}/ledger;{key}={secret}",
    "{backend}://{nowhere}/ledger#{secret}!",
    "{backend}:ann:{secret}@{nowhere}/ledger",
    "{backend}:/ann:{secret}@{nowhere}/ledger",
    "ann:{secret}@{nowhere}/ledger",
    "{secret}://ann@{nowhere}/ledger",
    "{backend}+{secret}://ann@{nowhere}/ledger",
    "host=127.0.0.1 port=1 user=ann password={secret}",
    "oracle://ann:{secret}@{nowhere}/ledger",
    "sqlite:///{folder}/x.sqlite?{key}={secret}",
    "sqlite:///file:{folder}/x.sqlite?{key}={secret}&uri=true",
    "sqlite+pysqlcipher://:{secret}@/{folder}/x.sqlite",
    "sqlite://ann:{secret}@{nowhere}/x.sqlite",
)

# Nothing else in a message looks like these, so that whatever part of a password is told is seen.
secrets = st.text("ZQJXzqjx0189@:/?#&%=+ '\"\\;!é", min_size=4, max_size=24).filter(lambda text: len(set(text) & set("ZQJXzqjx")) > 2)


def told_of(text):
    """Return what a task that is given this database says."""
    try:
        with open_ledger(text) as ledger:
            return describe(ledger.url)
    except (InputError, Unavailable) as error:
        return str(error)


def parts_of(secret):
    """Return what of a secret no message may have: the whole of it, and each longer run of its letters."""
    runs = "".join(character if character in "ZQJXzqjx" else " " for character in secret).split()
    return {secret, urllib.parse.quote(secret, safe=""), *(run for run in runs if len(run) > 2)}


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), backend=st.sampled_from(BACKENDS), key=st.sampled_from(KEYS), secret=secrets, quoted=st.booleans())
@example(place=PLACES[0], backend="postgresql", key="x", secret="ZQ/JX@zqjx", quoted=False)
@example(place=PLACES[8], backend="postgresql", key="password", secret="ZQJX", quoted=False)
@example(place=PLACES[15], backend="postgresql", key="x", secret="ZQJX/zq", quoted=False)
@example(place="{backend}://{nowhere}/ledger?{secret}=1", backend="postgresql", key="x", secret="JQX=", quoted=False)
@example(place="{backend}://{nowhere}/ledger?{secret}=1", backend="postgresql", key="x", secret="JQX=", quoted=True)
@example(place="sqlite+pysqlcipher://:{secret}@/{folder}/x.sqlite", backend="postgresql", key="x", secret="@/JQX", quoted=False)
def test_no_message_tells_a_password(place, backend, key, secret, quoted, tmp_path, monkeypatch):
    # Some of what is no URL of a server is the path of a file, which lies in the working directory.
    monkeypatch.chdir(tmp_path)
    written = urllib.parse.quote(secret, safe="") if quoted else secret
    text = place.format(backend=backend, key=key, secret=written, nowhere=NOWHERE, folder=tmp_path)
    told = told_of(text)
    assert not [part for part in parts_of(secret) if part in told], f"{text} -> {told}"


@pytest.mark.parametrize(
    ("given_url", "shown"),
    [
        ("sqlite:////var/lib/bareon.sqlite", "sqlite+pysqlite:////var/lib/bareon.sqlite"),
        ("sqlite:////var/lib/b@reon.sqlite", "sqlite+pysqlite:////var/lib/b@reon.sqlite"),
        ("sqlite://", "sqlite+pysqlite://"),
        ("sqlite:///file:x?mode=ro&uri=true", "sqlite+pysqlite:///file:x?..."),
        ("postgresql://ann:pw@db.example.org:5433/ledger", "postgresql+psycopg://ann:***@db.example.org:5433/ledger"),
        ("postgresql://ann@db/ledger?password=pw&sslmode=require", "postgresql+psycopg://ann@db/ledger?..."),
        ("postgresql://[::1]:5432/ledger", "postgresql+psycopg://[::1]:5432/ledger"),
        ("postgresql:///ledger", "postgresql+psycopg:///ledger"),
        ("mariadb://an%3An:pw@db/led=ger", "mysql+pymysql://***:***@db/***"),
    ],
)
def test_what_is_no_secret_is_shown(given_url, shown):
    assert describe(parse_database(given_url)) == shown


@pytest.mark.parametrize(
    ("given_url", "says"),
    [
        ("postgresql://ann:pw@db:port/ledger", "port that is not a number"),
        ("postgresql://ann:p@w@db/ledger", "%40 for @"),
        ("/var/lib/bareon.sqlite", "a file is written sqlite:////var/lib/bareon.sqlite"),
        ("oracle://db/ledger", "use sqlite, postgresql or mariadb"),
        ("postgresql+nothing://db/ledger", "names a driver that SQLAlchemy does not know"),
        ("postgresql+psycopg+nothing://db/ledger", "names a driver that SQLAlchemy does not know"),
    ],
)
def test_what_cannot_be_used_says_what_would_be_right(given_url, says):
    with pytest.raises(InputError) as error:
        parse_database(given_url)
    assert says in str(error.value)
    assert not isinstance(error.value, SQLAlchemyError)


@pytest.mark.parametrize(
    "given_url", ["sqlite:///x.sqlite?timeout=soon", "mariadb://127.0.0.1:1/ledger?colour=red", "mariadb://127.0.0.1:1/ledger?plugin=x"]
)
def test_options_that_no_driver_takes_are_mistakes_of_the_url(given_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="^database: "), open_ledger(given_url):
        pass


@pytest.mark.parametrize(
    ("backend", "option"),
    [
        ("mysql", "read_default_file"),
        ("mariadb", "read_default_group"),
        ("mysql", "init_command"),
        ("mysql", "local_infile"),
        ("mysql", "cursorclass"),
        ("mysql", "conv"),
        ("postgresql", "service"),
        ("postgresql", "servicefile"),
        ("postgresql", "passfile"),
        ("postgresql", "row_factory"),
        ("sqlite", "vfs"),
        ("sqlite", "factory"),
        ("sqlite", "detect_types"),
    ],
)
def test_options_that_read_files_or_run_things_are_refused_by_name(backend, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("[hidden line\n")
    with (
        pytest.raises(InputError) as error,
        open_ledger(f"{backend}://{'' if backend == 'sqlite' else NOWHERE}/x?{option}={tmp_path}/file"),
    ):
        pass
    assert f"has the option {option}, which is not taken" in str(error.value)
    assert "hidden line" not in str(error.value)
    assert "timeout" in str(error.value), "it says what may be there"


def test_a_key_that_may_be_a_password_is_not_repeated():
    with pytest.raises(InputError, match="has an option that is not taken") as error:
        parse_database("postgresql://db/ledger?hunter2=1")
    assert "hunter2" not in str(error.value)
    with pytest.raises(InputError) as error:
        parse_database("postgresql://db/ledger?hunter2=1&passfile=/x")
    assert "hunter2" not in str(error.value)
