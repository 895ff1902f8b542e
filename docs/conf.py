# SPDX-License-Identifier: Apache-2.0
"""The settings of the documentation site: Sphinx with MyST, built from the tree's Markdown (make docs).

The source folder is the root of the tree, so that links in README.md and in docs/ work on GitHub and
on the site. The navigation follows the links of the pages in MENUS; the pages have no directives.
"""
from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

project = "cutegen"
author = "the cutegen contributors"
project_copyright = author
root_doc = "docs/index"
extensions = ["myst_parser"]
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**.md"]
exclude_patterns = [".git", ".venv", "build", "apps", "src", "tests", "python"]
myst_heading_anchors = 4
templates_path = ["_templates"]
html_theme = "furo"
html_title = "cutegen"
html_copy_source = False
html_show_sourcelink = False
# The start of the site leads to root_doc, which lies in a folder of its own.
html_additional_pages = {"index": "to_root.html"}

# Pages whose links are the menu: below each heading, a menu of the pages that the text links first.
MENUS = ("docs/index", "docs/measurements/README", "docs/reference/README")
LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s#]+\.md)\)")


def menu_of(page: str, text: str) -> str:
    """One hidden table of contents for each section of the page, in the order of its links.

    The text of a link is the title in the menu; if it is a file's name, the page's own title is.
    """
    folder, seen, out = PurePosixPath(page).parent, {page}, ""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        entries = ""
        for text_of_link, target in LINK.findall(section):
            name = resolve(folder / target).removesuffix(".md")
            if name not in seen:
                entries += f"/{name}\n" if text_of_link.endswith(".md") else f"{text_of_link} </{name}>\n"
            seen.add(name)
        if entries:
            title = section.partition("\n")[0]
            out += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}```\n"
    return out


def resolve(path: PurePosixPath) -> str:
    """The path without "..": PurePosixPath keeps them."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def add_menu(_app: Any, page: str, source: list[str]) -> None:
    if page in MENUS:
        source[0] += menu_of(page, source[0])


def setup(app: Any) -> None:
    app.connect("source-read", add_menu)
