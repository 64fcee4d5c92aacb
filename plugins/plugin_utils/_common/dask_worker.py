# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on a worker of a Dask cluster before it has this collection's code: it unpacks the code, and calls one function.

The text of this file goes to the worker with each job, so that it imports nothing of the collection, and asks for no certain
version of Python.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import platform
import sys
import threading
import uuid
import zipfile

UNPACKED = "bareon_allocator-"
"""How the names of folders begin that code is unpacked into."""
_OURS = "ansible_collections"
_COMMON = "ansible_collections.bareon.allocator.plugins.plugin_utils._common"


def call(archive: bytes, name: str, job: bytes) -> str:
    """Return what became of a job, as JSON: ["returned", result], ["raised", its exception] or ["refused", why it cannot run].

    Results and exceptions are as common/answers.py writes them.

    A job is (function, arguments, named arguments), pickled; `archive` is a ZIP of the code with `name` as its version.
    """
    import cloudpickle
    import distributed

    worker = distributed.get_worker()
    # Threads of a worker share its modules.
    with worker.__dict__.setdefault("bareon_allocator_lock", threading.Lock()):
        # Put code at the front of where modules are found; forget any other version that was loaded, installed ones
        # too.
        folder = os.path.join(worker.local_directory, name)
        if not os.path.isdir(folder):
            new = f"{folder}.{uuid.uuid4().hex}"
            with zipfile.ZipFile(io.BytesIO(archive)) as files:
                files.extractall(new)
            os.rename(new, folder)
        if folder not in sys.path:
            sys.path[:] = [folder, *(entry for entry in sys.path if not os.path.basename(entry).startswith(UNPACKED))]
            for loaded in [loaded for loaded in sys.modules if loaded == _OURS or loaded.startswith(f"{_OURS}.bareon")]:
                del sys.modules[loaded]
            importlib.invalidate_caches()
        try:
            function, arguments, named = cloudpickle.loads(job)
            importlib.import_module(f"{_COMMON}.libraries").refuse_missing("")
            answers = importlib.import_module(f"{_COMMON}.answers")
        except Exception as error:
            return json.dumps(["refused", f"the worker {worker.address}, which is Python {platform.python_version()}: {error}"])
    try:
        return json.dumps(["returned", answers.written(function, function(*arguments, **named))])
    except Exception as error:
        return json.dumps(["raised", answers.written_error(error)])
