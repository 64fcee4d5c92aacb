# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Dask cluster as users run it: a scheduler and workers that are processes of their own, each in a folder of its own.

with started(folder) as address: ...

Their Python has the libraries of requirements.txt and `distributed`, and no way to the collection. It is the one that runs
the tests, or that of the variable TEST_DASK_PYTHON, for which tests/utils/dask-venv makes an environment with nothing else.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import types
import typing as t
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import dask
import distributed
import yaml

SECONDS = 60


def python() -> pathlib.Path:
    """Return the Python of the cluster's processes."""
    return pathlib.Path(os.environ.get("TEST_DASK_PYTHON", sys.executable))


def write_certificates(folder: pathlib.Path) -> dict[str, str]:
    """Write a certificate that vouches for itself; return what Dask's configuration calls its files."""
    made = distributed.Security.temporary()
    (folder / "ca.pem").write_text(made.tls_ca_file)
    (folder / "key.pem").write_text(made.tls_client_key)
    return {"ca-file": str(folder / "ca.pem"), "cert": str(folder / "ca.pem"), "key": str(folder / "key.pem")}


def client_settings(certificates: Mapping[str, str]) -> dict[str, str]:
    """Return the certificates as keys of Dask's configuration, for a client."""
    return {
        "distributed.comm.tls.ca-file": certificates["ca-file"],
        "distributed.comm.tls.client.cert": certificates["cert"],
        "distributed.comm.tls.client.key": certificates["key"],
    }


def write_settings(file: pathlib.Path, settings: Mapping[str, str]) -> None:
    """Write keys of Dask's configuration as a file of it."""
    nested: dict[str, t.Any] = {}
    dask.config.set(settings, config=nested)
    file.write_text(yaml.safe_dump(nested))


@contextmanager
def started(folder: pathlib.Path, workers: int = 2, certificates: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the address of a cluster of so many workers."""
    options = [f"--tls-{name}={file}" for name, file in (certificates or {}).items()]
    protocol = "tls" if certificates else "tcp"
    with ExitStack() as stack:
        at = folder / "scheduler"
        _start(stack, at, {}, "scheduler", f"--host={protocol}://127.0.0.1", "--port=0", "--scheduler-file=address.json", *options)
        address = _address(at / "address.json")
        for number in range(workers):
            _start(stack, folder / f"worker-{number}", {}, *_worker(address), *options)
        with dask.config.set(client_settings(certificates) if certificates else {}):
            _wait_for(address, workers)
        yield address


@contextmanager
def joined(folder: pathlib.Path, address: str, environment: Mapping[str, str] = types.MappingProxyType({})) -> Iterator[None]:
    """Have one more worker in a cluster, with more in its environment."""
    with ExitStack() as stack, distributed.Client(address, set_as_default=False) as client:
        before = len(client.ncores())
        _start(stack, folder, environment, *_worker(address), "--no-nanny")
        client.wait_for_workers(before + 1, timeout=SECONDS)
        yield


def _worker(address: str) -> tuple[str, ...]:
    return "worker", address, "--nthreads=1", "--local-directory=."


def _wait_for(address: str, workers: int) -> None:
    if workers:
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=SECONDS)


def _start(stack: ExitStack, folder: pathlib.Path, more: Mapping[str, str], *command: str) -> None:
    """Start a program of Dask in a new folder; it ends with the stack."""
    folder.mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **more}
    with (folder / "log").open("w") as log:
        program = [str(python()), "-m", "dask", *command, "--no-dashboard"]
        process = subprocess.Popen(program, cwd=folder, env=environment, stdout=log, stderr=log)
    stack.callback(_end, process)


def _end(process: subprocess.Popen[t.Any]) -> None:
    process.terminate()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(file: pathlib.Path) -> str:
    """Return the address that a scheduler writes when it is there."""
    end = time.monotonic() + SECONDS
    while not file.exists() or not file.stat().st_size:
        if time.monotonic() > end:
            raise AssertionError((file.parent / "log").read_text())
        time.sleep(0.05)
    told: dict[str, t.Any] = json.loads(file.read_text())
    return str(told["address"])
