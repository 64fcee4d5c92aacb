# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write tests/sanity/ignore-*.txt, or with --check say whether they are what this would write.

The rooms of plugin_utils import their third-party libraries plainly; the action plugin is the door that guards the
import. ansible-test's import test runs without those libraries, so the files that need them are left out of it, and
only they: found by reading the imports, so that no file is left out longer than it needs to be.
"""

from __future__ import annotations

import ast
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
UTILS = ROOT / "plugins" / "plugin_utils"
ABSENT = {
    "alembic",
    "cloudpickle",
    "distributed",
    "highspy",
    "networkx",
    "numpy",
    "os_resource_classes",
    "os_traits",
    "scipy",
    "sqlalchemy",
    "yaql",
}
PYTHONS = {
    "2.19": ("3.11", "3.12", "3.13"),
    "2.20": ("3.12", "3.13", "3.14"),
    "2.21": ("3.12", "3.13", "3.14"),
    "2.22": ("3.12", "3.13", "3.14"),
}
ALWAYS = (
    "playbooks/files/bareon-iallocator shebang # a program, and Debian has no other name for its Python",
    "plugins/plugin_utils/group/sources/server.py replace-urlopen # a room of plain Python that knows nothing of Ansible",
)


def imports(path: pathlib.Path) -> tuple[set[str], set[pathlib.Path]]:
    """Return the top-level packages and the files of plugin_utils that a file imports when it is loaded."""
    packages: set[str] = set()
    files: set[pathlib.Path] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            packages |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            packages.add(node.module.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level > 0:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            candidates = [base.with_suffix(".py"), *(base / f"{name.name}.py" for name in node.names)]
            files |= {file for file in candidates if file.is_file()}
    return packages, files


def needs_libraries(path: pathlib.Path, seen: frozenset[pathlib.Path] = frozenset()) -> bool:
    """Tell whether loading the file imports a library that the import test does not have."""
    if path in seen:
        return False
    packages, files = imports(path)
    return bool(packages & ABSENT) or any(needs_libraries(file, seen | {path}) for file in files)


def wanted() -> dict[pathlib.Path, str]:
    """Return the ignore files and their texts."""
    needing = [path.relative_to(ROOT).as_posix() for path in sorted(UTILS.rglob("*.py")) if needs_libraries(path)]
    texts = {}
    for core, pythons in PYTHONS.items():
        lines = [f"{path} import-{python}!skip # imports a library that the action plugin guards" for path in needing for python in pythons]
        lines = sorted([*lines, *ALWAYS])
        texts[ROOT / "tests" / "sanity" / f"ignore-{core}.txt"] = "".join(f"{line}\n" for line in lines)
    return texts


def main() -> int:
    """Write the files, or compare them with --check."""
    stale = [path for path, text in wanted().items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: run tests/utils/sanity_ignores.py")
        return bool(stale)
    for path in stale:
        path.write_text(wanted()[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
