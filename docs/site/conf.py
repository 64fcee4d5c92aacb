# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the pages of the documentation are made: the guides as they lie in the repository, and the reference out of the plugins."""

from __future__ import annotations

import typing as t

from docutils import nodes
from docutils.parsers.rst import Directive
from pygments.lexers import IniLexer, JsonLexer, TextLexer, YamlLexer

project = "bareon.allocator"
author = "The bareon.allocator maintainers"
html_title = "bareon.allocator"

extensions = ["myst_parser", "sphinx_antsibull_ext", "sphinx_copybutton"]
exclude_patterns = [".github", "docs/site"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4
# Pages that are made for a forge begin with what they are, and may skip a level of headings.
suppress_warnings = ["myst.header"]
highlight_language = "YAML+Jinja"
html_theme = "furo"
html_static_path = ["static"]
html_js_files = ["landmarks.js"]
html_show_sphinx = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

ANSIBLE = "https://docs.ansible.com/ansible/latest"
ELSEWHERE = {
    "common_return_values": "reference_appendices/common_return_values.html",
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
}
"""Labels of Ansible's own documentation that the reference points to."""
INSTALLERS = {
    "butane": YamlLexer,
    "curtin": YamlLexer,
    "disko": TextLexer,
    "drift": TextLexer,
    "fai": TextLexer,
    "ignition": JsonLexer,
    "kickstart": TextLexer,
    "repart": IniLexer,
}
"""What the guide to installers calls its results, and how they are written."""


def resolve_elsewhere(app: t.Any, environment: t.Any, node: t.Any, content: t.Any) -> nodes.reference | None:
    """Return a link to Ansible's own documentation; it needs no inventory, which could be had online only."""
    label = node.get("reftarget", "")
    page = ELSEWHERE.get(label)
    if label.startswith("ansible_collections.") and not label.startswith("ansible_collections.bareon."):
        name = label.removeprefix("ansible_collections.").partition("__")[0]
        namespace, collection, plugin = name.split(".", 2)
        page = f"collections/{namespace}/{collection}/{plugin}.html"
    if page is None:
        return None
    link = nodes.reference("", "", internal=False, refuri=f"{ANSIBLE}/{page}")
    link += content
    return link


class NoContents(Directive):
    """Stand for `contents`, since each page has them beside it."""

    option_spec: t.ClassVar[t.Any] = {"local": lambda value: value, "depth": int}

    def run(self) -> list[nodes.Node]:
        """Return nothing."""
        return []


def make_scrollable_by_keys(app: t.Any, page: str, template: str, context: dict[str, t.Any], tree: t.Any) -> None:
    """Let the keyboard reach what scrolls sideways: code and wide tables."""
    body = context.get("body", "")
    for start, reached in (("<pre>", '<pre tabindex="0">'), ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')):
        body = body.replace(start, reached)
    context["body"] = body


def setup(app: t.Any) -> None:
    """Have labels that are nowhere here looked up in Ansible's documentation, and show the files of installers."""
    for name, lexer in INSTALLERS.items():
        app.add_lexer(name, lexer)
    app.add_directive("contents", NoContents, override=True)
    app.connect("missing-reference", resolve_elsewhere)
    app.connect("html-page-context", make_scrollable_by_keys)
