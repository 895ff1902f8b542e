# SPDX-License-Identifier: Apache-2.0
"""Lists the pins of a requirements file that are missing in this interpreter's environment.

Usage: missing_wheels.py [--no-deps | --with-deps] REQUIREMENTS
Prints one "name==version" per line. A local version ("2.13.0+cpu") satisfies its pin. Setup installs lines marked
"# no-deps" without their dependencies.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata


def pins(path: str) -> Iterator[tuple[str, bool]]:
    """The (pin, no_deps) pairs of the file, in order."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            pin, _, comment = line.partition("#")
            if pin.strip():
                yield pin.strip(), "no-deps" in comment


def is_installed(pin: str) -> bool:
    name, _, version = pin.partition("==")
    try:
        return metadata.version(name).partition("+")[0] == version
    except metadata.PackageNotFoundError:
        return False


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("--") and len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for pin, no_deps in pins(arguments[-1]):
        wanted = {"--no-deps": no_deps, "--with-deps": not no_deps}.get(arguments[0], True)
        if wanted and not is_installed(pin):
            print(pin)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
