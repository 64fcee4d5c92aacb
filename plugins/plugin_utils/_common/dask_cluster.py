# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Dask cluster as an executor of concurrent.futures that runs this collection's functions.

The code goes to the workers as an archive with each job, since collections are no packages that could be installed there:
the scheduler keeps no code, and workers that join later get it, too. Jobs pass the scheduler as bytes, answers as
JSON, and workers call a function of Python alone, so that the scheduler needs neither the code nor its libraries; workers need
the libraries. No pickle of theirs is read here. Certificates for an address with `tls://` are those of Dask's own configuration.
Dask is optional: only what asks for a cluster loads it, which takes a second.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import pathlib
import typing as t
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from ...module_utils._data.errors import Unavailable
from . import answers, dask_worker
from .libraries import REQUIREMENTS
from .unpickled import nothing_unpickled

PLUGINS = pathlib.Path(__file__).resolve().parents[2]
CODE = ("module_utils/_data", "plugin_utils")
"""What runs on workers, below `plugins`."""
PACKAGE = "ansible_collections/bareon/allocator/plugins"
CONNECT_SECONDS = 15
_MOMENT = (1980, 1, 1, 0, 0, 0)
_AT_WORKER = "exec(source) or call(archive, name, job)"
"""What a worker evaluates: a function that is pickled would only run with the same Python."""
_TLS = (
    "; certificates are named in Dask's configuration: distributed.comm.tls.ca-file, distributed.comm.tls.client.cert "
    "and distributed.comm.tls.client.key"
)


class ClusterExecutor(Executor):
    """Runs functions on a cluster; what they raise is raised by the future's `result`."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        archive = code_archive()
        source = pathlib.Path(dask_worker.__file__).read_text(encoding="utf-8")
        self._code = {"source": source, "archive": archive, "name": archive_name(archive)}

    def submit(self, fn: Callable[..., t.Any], /, *arguments: t.Any, **named: t.Any) -> Future[t.Any]:
        """Return a future of what the function returns there."""
        import cloudpickle

        done = self._pool.submit(eval, _AT_WORKER, {**self._code, "job": cloudpickle.dumps((fn, arguments, named))})
        future: Future[t.Any] = Future()
        future.add_done_callback(lambda ours: done.cancel() if ours.cancelled() else None)
        done.add_done_callback(lambda theirs: _pass_on(theirs, future, fn))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more functions; cancel those that have not ended, unless they are waited for."""
        self._pool.shutdown(wait=wait and not cancel_futures)


@contextmanager
def cluster_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the Dask cluster whose scheduler is at `address`, and how many functions it runs at a time.

    Raises Unavailable when nothing answers, the cluster has no workers, or there is no Dask here.
    """
    try:
        import distributed
    except ImportError as error:
        raise Unavailable(f"scheduler {address}: a Dask cluster needs the Python library {error.name} on the controller") from error
    with nothing_unpickled(), warnings.catch_warnings():
        # Bytes are all that is exchanged, so that versions may differ.
        warnings.simplefilter("ignore")
        try:
            # A client that reaches nothing would be left half made, and lock the next one when it is collected.
            asyncio.run(_reach(address))
            client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TypeError, ValueError) as error:
            tls = _TLS if address.startswith("tls:") else ""
            raise Unavailable(f"scheduler {address}: cannot be reached as a Dask scheduler: {error}{tls}") from error
        with client:
            cores = sum(client.ncores().values())
            if not cores:
                raise Unavailable(f"scheduler {address}: the cluster has no workers")
            pool = ClusterExecutor(client.get_executor(pure=False))
            try:
                yield pool, cores
            finally:
                pool.shutdown(cancel_futures=True)


async def _reach(address: str) -> None:
    """Open a connection and close it. Raises OSError, and TypeError or ValueError for what is no address or lacks certificates."""
    import distributed

    security = distributed.Security().get_connection_args("client")
    connection = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **security)
    await connection.close()


def code_archive() -> bytes:
    """Return a ZIP archive of the code, the same bytes for the same code."""
    root = pathlib.PurePosixPath(PACKAGE)
    sources = (file for folder in CODE for file in (PLUGINS / folder).rglob("*.py"))
    files = {str(root / file.relative_to(PLUGINS).as_posix()): file.read_bytes() for file in sources}
    # Whole packages are found before those of the same name that are installed.
    packages = {above for folder in CODE for above in (root / folder).parents if above.name}
    files |= {str(folder / "__init__.py"): b"" for folder in (*packages, root / "plugin_utils")}
    files[str(root.parent / REQUIREMENTS.name)] = REQUIREMENTS.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def archive_name(archive: bytes) -> str:
    """Return a name that differs between versions of the code."""
    return f"{dask_worker.UNPACKED}{hashlib.sha256(archive).hexdigest()[:12]}"


def _pass_on(theirs: Future[t.Any], ours: Future[t.Any], job: Callable[..., t.Any]) -> None:
    """Complete our future as theirs was; one that was cancelled meanwhile stays so."""
    if theirs.cancelled():
        ours.cancel()
        return
    if not ours.set_running_or_notify_cancel():
        return
    error = theirs.exception()
    if error is not None:
        ours.set_exception(Unavailable(_why(error)))
        return
    try:
        outcome, content = json.loads(theirs.result())
        if outcome == "returned":
            ours.set_result(answers.read(job, content))
        elif outcome == "raised":
            ours.set_exception(answers.read_error(content))
        else:
            ours.set_exception(Unavailable(f"the Dask cluster cannot run this collection: {content}"))
    except Exception as unread:
        # Whatever it is: nobody else completes our future, and its caller would wait for ever.
        ours.set_exception(Unavailable(f"a worker of the Dask cluster answers with something else than was asked for: {unread}"))


def _why(error: BaseException) -> str:
    """Return why a job has no answer. Errors of the cluster itself are pickles, of which only the name of one matters."""
    pickled = error.args[0] if error.args else ""
    if isinstance(pickled, bytes) and b"KilledWorker" in pickled:
        return "the Dask cluster has lost the workers that a job ran on, perhaps because they ran out of memory"
    shown = "its error is not read" if isinstance(pickled, bytes) else str(error)
    return f"a worker of the Dask cluster failed before it could answer; see its log ({shown})"
