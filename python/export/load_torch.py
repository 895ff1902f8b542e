# SPDX-License-Identifier: Apache-2.0
"""Loads what test and bench compare: the exported module and the reference, from this folder."""

import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_NAME = "exported_" + _HERE.name
_spec = importlib.util.spec_from_file_location(_NAME, _HERE / "__init__.py", submodule_search_locations=[str(_HERE)])
assert _spec is not None and _spec.loader is not None
_package = importlib.util.module_from_spec(_spec)
sys.modules[_NAME] = _package
_spec.loader.exec_module(_package)
Model, reference, exported = _package.Model, _package.reference, _package.exported
data = exported.data
