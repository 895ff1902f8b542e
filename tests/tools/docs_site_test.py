# SPDX-License-Identifier: Apache-2.0
"""docs/conf.py: the menu of the site follows the links of docs/index.md (make docs builds the site)."""
from __future__ import annotations

import importlib.util
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("conf", ROOT / "docs/conf.py")
assert SPEC and SPEC.loader
conf = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(conf)


class Menu(unittest.TestCase):
    def test_each_section_is_a_menu_in_the_order_of_its_links(self) -> None:
        menu = conf.menu_of("docs/index", "# T\n[x](no.md)\n## One\n[B](b.md) [A](../a.md) [web](https://x.org/c)\n"
                            "## None\ntext\n## Two\n[sub/c.md](sub/c.md) [again](b.md) [self](index.md) [h](b.md#h)\n")
        self.assertEqual(menu, "\n```{toctree}\n:hidden:\n:caption: One\n\nB </docs/b>\nA </a>\n```\n"
                               "\n```{toctree}\n:hidden:\n:caption: Two\n\n/docs/sub/c\n```\n")

    def test_the_pages_with_menus_exist_and_the_order_is_the_order_of_reading(self) -> None:
        for page in conf.MENUS:
            self.assertTrue((ROOT / (page + ".md")).is_file(), page)
        menu = conf.menu_of("docs/index", (ROOT / "docs/index.md").read_text(encoding="utf-8"))
        places = [menu.index(f"/{name}>") for name in (
            "docs/get_started", "docs/tasks", "docs/evaluation", "docs/gpu", "docs/models", "docs/export",
            "ARCHITECTURE", "docs/reference/README")]
        self.assertEqual(places, sorted(places))

    def test_only_the_pages_with_menus_get_one(self) -> None:
        for page, count in (("docs/index", 1), ("docs/tasks", 0)):
            source = ["# T\n## S\n[a](a.md)\n"]
            conf.add_menu(None, page, source)
            self.assertEqual(source[0].count("{toctree}"), count)


if __name__ == "__main__":
    unittest.main()
