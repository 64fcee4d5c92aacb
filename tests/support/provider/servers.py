# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real database servers for one test run: on loopback, with data directories of their own, as an unprivileged user.

They need Debian's packages postgresql, pgbouncer, mariadb-server and rsync; one that is missing fails the test and says so.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import OperationalError

_START_SECONDS = 90
_GALERA_LIBRARIES = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")


def find(program, *directories):
    """Return the path of a program, searched also where it is not on the PATH; RuntimeError says what to install."""
    path = shutil.which(program, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", *map(str, directories)]))
    if path is None:
        raise RuntimeError(f"{program} is not installed; these tests need: apt-get install postgresql pgbouncer mariadb-server rsync")
    return path


def free_ports(count):
    """Return ports that nobody listens on."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _unused in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def data_directory():
    """Make a directory that the unprivileged user owns, in TEST_SERVERS or /tmp; removed when the test is over."""
    path = Path(tempfile.mkdtemp(prefix="bareon-", dir=os.environ.get("TEST_SERVERS", "/tmp")))
    if _account():
        os.chown(path, *_account())
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def postgresql():
    """Start PostgreSQL and give the URL of an empty database."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    with data_directory() as directory:
        data = directory / "data"
        _run(find("initdb", *binaries), "--pgdata", data, "--username=ledger", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        (port,) = free_ports(1)
        options = ("-c", f"unix_socket_directories={directory}", "-c", "max_connections=50")
        url = f"postgresql+psycopg://ledger@127.0.0.1:{port}/postgres"
        with _server(directory, url, find("postgres", *binaries), "-D", data, "-h", "127.0.0.1", "-p", port, *options):
            yield url


@contextmanager
def pgbouncer(url, mode, connections):
    """Start PgBouncer before a PostgreSQL server, with so many connections to it, and give the URL of the same database by way of it."""
    server = make_url(url)
    with data_directory() as directory:
        (port,) = free_ports(1)
        settings = directory / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={server.host} port={server.port} user={server.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = {mode}\ndefault_pool_size = {connections}\n",
            encoding="utf-8",
        )
        pooled = server.set(port=port).render_as_string(hide_password=False)
        with _server(directory, pooled, find("pgbouncer"), settings):
            yield pooled


@contextmanager
def mariadb():
    """Start MariaDB and give the URL of an empty database."""
    with data_directory() as directory, _mariadb_node(directory, free_ports(1)[0]) as url:
        yield url


@contextmanager
def galera():
    """Start a Galera cluster of two MariaDB nodes and give the URL of one database on each of them."""
    library = next((path for path in _GALERA_LIBRARIES if os.path.exists(path)), None)
    if library is None:
        raise RuntimeError("libgalera_smm.so is not installed; these tests need: apt-get install galera-4")
    find("rsync")
    ports = free_ports(8)
    members = f"gcomm://127.0.0.1:{ports[1]},127.0.0.1:{ports[5]}"
    with ExitStack() as opened:
        urls = []
        for first in (0, 4):
            directory = opened.enter_context(data_directory())
            port, group, state, incremental = ports[first : first + 4]
            options = (
                "--wsrep-on=ON",
                f"--wsrep-provider={library}",
                f"--wsrep-cluster-address={members}",
                f"--wsrep-node-address=127.0.0.1:{group}",
                f"--wsrep-sst-receive-address=127.0.0.1:{state}",
                f"--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{incremental};gcache.size=32M",
                "--wsrep-sst-method=rsync",
                "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2",
                *(() if urls else ("--wsrep-new-cluster",)),
            )
            urls.append(opened.enter_context(_mariadb_node(directory, port, *options)))
        yield urls


@contextmanager
def _mariadb_node(directory, port, *options):
    data = directory / "data"
    _run(find("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db")
    url = f"mysql+pymysql://root@127.0.0.1:{port}/mysql"
    common = (
        f"--datadir={data}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--socket={directory}/socket",
        f"--pid-file={directory}/pid",
    )
    with _server(directory, url, find("mariadbd"), "--no-defaults", *common, "--innodb-buffer-pool-size=64M", *options):
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("CREATE DATABASE IF NOT EXISTS ledger")
        engine.dispose()
        yield url.replace("/mysql", "/ledger").replace("//mysql", "//mysql")


@contextmanager
def _server(directory, url, *command):
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=output, cwd=directory, **_as_unprivileged())
        try:
            _wait_until_it_answers(process, url, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_it_answers(process, url, log):
    engine = create_engine(url)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            engine.connect().close()
        except OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {error}\n{log.read_text(errors='replace')[-4000:]}") from None
            time.sleep(0.2)
        else:
            engine.dispose()
            return


def _run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd="/", **_as_unprivileged())
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def _account():
    """Return user and group to run a server as: nobody's when the tests run as root, which servers refuse."""
    if os.getuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _as_unprivileged():
    account = _account()
    return {"user": account[0], "group": account[1], "extra_groups": []} if account else {}
