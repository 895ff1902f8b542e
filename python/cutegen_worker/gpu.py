# SPDX-License-Identifier: Apache-2.0
"""Prepares a worker with a GPU: starts CUDA, then installs the filter, before the worker sees a task."""

from __future__ import annotations

import ctypes
import os

import torch

from .errors import WorkerError, first_line

SECCOMP, SET_FILTER, ALL_THREADS = 317, 1, 1  # number, operation and flag of the x86-64 system call
NO_NEW_PRIVILEGES = 38
INSTRUCTION = 8  # bytes of a filter's instruction


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def start(device: str) -> None:
    """Starts CUDA on `device` ("cuda:0"), including all threads that the driver creates."""
    if not torch.backends.cuda.is_built():
        raise WorkerError(f"torch {torch.__version__} is built without CUDA", "",
                          "install a torch for CUDA, or name another interpreter: --python",
                          "world")
    # The mode fp32 means products of full float32 operands.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    try:
        torch.cuda.set_device(torch.device(device))
        torch.zeros(1, device=device).add_(1).item()
    except (RuntimeError, AssertionError) as error:
        raise WorkerError(f"torch cannot start {device}: {first_line(error)}", "",
                          "see `cutegen doctor`", "world") from None


def cudnn_version() -> str:
    """ "9.10.2", or an empty string without cuDNN."""
    number = torch.backends.cudnn.version() or 0
    if number >= 90000:  # from 9 on: major * 10000 + minor * 100 + patch
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}" if number else ""


def lock(program: bytes) -> str:
    """Installs the filter on every thread. Returns an empty string, or why it failed."""
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(program, len(program))
    given = Program(len(program) // INSTRUCTION, ctypes.addressof(text))
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return os.strerror(ctypes.get_errno())
    result = libc.syscall(SECCOMP, SET_FILTER, ALL_THREADS, ctypes.byref(given))
    if result == 0:
        return ""
    return os.strerror(ctypes.get_errno()) if result < 0 else f"thread {result} does not take it"
