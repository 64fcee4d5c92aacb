# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same input gives the same answer on machines whose CPUs add in another order: BLAS and numpy are told to work as on older ones."""

from __future__ import annotations

import os
import subprocess
import sys

from ansible_collections.bareon.allocator.tests.support.house import answers

SEEDS = ("0", "15")
CPUS = [{}, {"OPENBLAS_CORETYPE": "Nehalem"}, {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}]


def test_the_same_answer_on_every_cpu():
    own = {name: value for name, value in os.environ.items() if name not in {"OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"}}
    own["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    started = [
        subprocess.Popen([sys.executable, answers.__file__, *SEEDS], env={**own, **cpu}, stdout=subprocess.PIPE, text=True) for cpu in CPUS
    ]
    said = [process.communicate()[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0] * len(CPUS)
    assert len(said[0]) == 5 * (int(SEEDS[1]) - int(SEEDS[0]))
    for other in said[1:]:
        assert [one for one, another in zip(said[0], other, strict=True) if one != another] == []
