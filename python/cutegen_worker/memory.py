# SPDX-License-Identifier: Apache-2.0
"""The evaluator's GPU memory, which this process maps while it writes a set into it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from .errors import WorkerError

DESCRIPTOR, DEVICE = 1, 1
READ_ONLY, READ_AND_WRITE = 1, 3


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class Bytes:
    """GPU bytes at an address, as an array that torch accepts."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3,
        }


class Mapped:
    """One block of shared memory, mapped until close(). Without `again`, the address stays reserved: no later block
    gets it, so code that kept the address reads nothing."""

    def __init__(self, descriptor: int, count: int, rights: int = READ_AND_WRITE, again: bool = True) -> None:
        self.again = again
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.count = count
        self.handle: ctypes.c_uint64 | None = None
        self.address: ctypes.c_uint64 | None = None
        self.is_mapped = False
        handle, address = ctypes.c_uint64(), ctypes.c_uint64()
        self.call("cuMemImportFromShareableHandle", ctypes.byref(handle),
                  ctypes.c_void_p(descriptor), DESCRIPTOR)
        self.handle = handle
        self.call("cuMemAddressReserve", ctypes.byref(address), self.size(), ctypes.c_size_t(0),
                  ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.address = address
        self.call("cuMemMap", address, self.size(), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        self.is_mapped = True
        access = Access(Location(DEVICE, torch.cuda.current_device()), rights)
        self.call("cuMemSetAccess", address, self.size(), ctypes.byref(access), ctypes.c_size_t(1))

    def size(self) -> ctypes.c_size_t:
        return ctypes.c_size_t(self.count)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.driver, name)(*arguments)
        if status != 0:
            self.close()
            raise WorkerError(f"{name} fails with {status} on shared GPU memory", "", "", "world")

    def tensor(self, offset: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A view of the memory. Drop it before close()."""
        count = torch.Size(shape).numel() * dtype.itemsize
        if offset < 0 or offset + count > self.count:
            raise WorkerError("a tensor lies outside the shared GPU memory", "", "", "internal")
        assert self.address is not None
        flat = torch.as_tensor(Bytes(self.address.value + offset, count), device="cuda")
        return flat.view(dtype).view(shape)

    def close(self) -> None:
        if self.is_mapped:
            self.driver.cuMemUnmap(self.address, self.size())
        if self.handle is not None:
            self.driver.cuMemRelease(self.handle)
        if self.address is not None and self.again:
            self.driver.cuMemAddressFree(self.address, self.size())
        self.is_mapped, self.handle, self.address = False, None, None
