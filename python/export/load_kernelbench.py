# SPDX-License-Identifier: Apache-2.0
"""Loads what test and bench compare: the exported module and the reference, from this folder."""

import importlib.util
import sys
import types
from pathlib import Path


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).resolve().with_name(name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


reference = _load("reference")
_new = _load("model_new")
Model, exported = _new.ModelNew, _new._exported
data = exported.data
