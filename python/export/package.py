# SPDX-License-Identifier: Apache-2.0
"""@NAME@: the module of reference.py with kernels for @GPU@. See README.md.

    from @PACKAGE@ import Model    # the same constructor, parameters and results

`op` is the operator that Model calls (torch.ops.@NAMESPACE@.run). It takes the inputs of forward(), then
parameters and buffers, in the order of `exported.given`.
"""

import json
from pathlib import Path
from typing import Any

from . import reference
from .runtime import Exported

_HERE = Path(__file__).resolve().parent
_DATA = json.loads((_HERE / "launches.json").read_text(encoding="utf-8"))
_IMAGES = [[(_HERE / "images" / name).read_bytes() for name in names] for names in _DATA["modules"]]
exported = Exported(_DATA, _IMAGES, reference)
op = exported.op


class Model(reference.Model):
    """The reference. The kernels compute what they support."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kernels = exported.adopt(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = exported.accept(self, self._kernels, args, kwargs)
        return super().forward(*args, **kwargs) if found is None else exported.answer(*found)
