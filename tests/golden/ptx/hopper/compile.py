# SPDX-License-Identifier: Apache-2.0
"""Compiles the Hopper programs to the PTX files beside them with NVRTC: compile.py [NAME ...]."""
from __future__ import annotations

import ctypes
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13"


def compiled(nvrtc: ctypes.CDLL, source: Path) -> bytes:
    """The PTX of a file."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    options = ["-arch=sm_90a", "-std=c++17", f"-I{HERE}", f"-I{PACKAGES}/include", f"-I{PACKAGES}/include/cccl"]
    texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), texts)
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, text)
        raise SystemExit(text.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    return text.value


def main(names: list[str]) -> None:
    ctypes.CDLL(str(next((PACKAGES / "lib").glob("libnvrtc-builtins.so.*"))), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(next((PACKAGES / "lib").glob("libnvrtc.so.*[0-9]"))))
    for source in [HERE / f"{name}.cu" for name in names] or sorted(HERE.glob("*.cu")):
        ptx = compiled(nvrtc, source)
        source.with_suffix(".ptx").write_bytes(ptx)
        print(len(ptx), source.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
