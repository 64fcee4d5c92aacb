# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Dask cluster as an executor of concurrent.futures that runs this collection's functions.

The code goes to the workers as an archive, since collections are no packages that could be installed there. Jobs and
results pass the scheduler as bytes, so that it needs neither the code nor its libraries; workers need the libraries.
Dask is optional: only what asks for a cluster loads it, which takes a second.
"""

from __future__ import annotations

import hashlib
import io
import pathlib
import sys
import tempfile
import typing as t
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from .errors import Unavailable

CODE = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = "ansible_collections/bareon/allocator/plugins/plugin_utils"
CONNECT_SECONDS = 15
_MOMENT = (1980, 1, 1, 0, 0, 0)


class ClusterExecutor(Executor):
    """Runs functions on a cluster; what they raise is raised by the future's `result`."""

    def __init__(self, pool: Executor, archive: str) -> None:
        self._pool = pool
        self._archive = archive

    def submit(self, fn: Callable[..., t.Any], /, *arguments: t.Any, **named: t.Any) -> Future[t.Any]:
        """Return a future of what the function returns there."""
        import cloudpickle

        done = self._pool.submit(_call_there, self._archive, cloudpickle.dumps((fn, arguments, named)))
        future: Future[t.Any] = Future()
        future.add_done_callback(lambda ours: done.cancel() if ours.cancelled() else None)
        done.add_done_callback(lambda theirs: _pass_on(theirs, future))
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
        import cloudpickle
        import distributed
    except ImportError as error:
        raise Unavailable(f"scheduler {address}: a Dask cluster needs the Python library {error.name} on the controller") from error
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise Unavailable(f"scheduler {address}: cannot be reached as a Dask scheduler: {error}") from error
    with client:
        cores = sum(client.ncores().values())
        if not cores:
            raise Unavailable(f"scheduler {address}: the cluster has no workers")
        # The function that unpacks the others must not itself need the archive.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder) / archive_name()
            archive.write_bytes(code_archive())
            client.upload_file(str(archive), load=False)
        pool = ClusterExecutor(client.get_executor(pure=False), archive.name)
        try:
            yield pool, cores
        finally:
            pool.shutdown(cancel_futures=True)


def code_archive() -> bytes:
    """Return a ZIP archive of plugin_utils, the same bytes for the same code."""
    files = {f"{PACKAGE}/{file.relative_to(CODE).as_posix()}": file.read_bytes() for file in CODE.rglob("*.py")}
    # Packages without __init__.py are only found in archives that name their folders.
    folders = {f"{folder}/" for name in files for folder in pathlib.PurePosixPath(name).parents if folder.name}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted({*files, *folders}):
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), files.get(name, b""))
    return buffer.getvalue()


def archive_name() -> str:
    """Return the archive's name, which tells versions of the code apart."""
    return f"bareon_allocator-{hashlib.sha256(code_archive()).hexdigest()[:12]}.zip"


def _call_there(archive: str, pickled: bytes) -> bytes:
    """Call a function on a worker, with the collection imported from the archive.

    It goes there without this module, so that it imports what it needs itself. Another version that a worker has loaded
    is forgotten.
    """
    import importlib
    import os
    import sys

    import cloudpickle
    import distributed

    path = os.path.join(distributed.get_worker().local_directory, archive)
    if path not in sys.path:
        sys.path[:] = [path, *(entry for entry in sys.path if "bareon_allocator-" not in entry)]
        for name in [name for name in sys.modules if name.startswith("ansible_collections.bareon")]:
            del sys.modules[name]
        importlib.invalidate_caches()
    function, arguments, named = cloudpickle.loads(pickled)
    result: bytes = cloudpickle.dumps(function(*arguments, **named))
    return result


def _pass_on(theirs: Future[bytes], ours: Future[t.Any]) -> None:
    """Complete our future as theirs was; one that was cancelled meanwhile stays so."""
    import cloudpickle
    import distributed

    if theirs.cancelled():
        ours.cancel()
    elif ours.set_running_or_notify_cancel():
        error = theirs.exception()
        if isinstance(error, distributed.KilledWorker):
            ours.set_exception(
                Unavailable(f"the Dask cluster has lost the workers that a job ran on, perhaps because they ran out of memory: {error}")
            )
        elif error is not None:
            ours.set_exception(error)
        else:
            ours.set_result(cloudpickle.loads(theirs.result()))
