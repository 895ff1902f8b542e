# SPDX-License-Identifier: Apache-2.0
"""Launches the kernels of an exported program through NVIDIA's driver; needs only PyTorch.

cutegen computed all launches when it exported the program: `shapes` in launches.json has them as numbers.
Calls queue their launches on the given stream and do not wait.
"""

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import torch

_WORD, _ADDRESS, _TEXT = ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
_SIZE, _U64, _U32 = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint32
_Step = Callable[[int], int]  # queues a launch on a stream and returns the driver's status
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuModuleLoadData": (_ADDRESS, _TEXT),
    "cuModuleGetFunction": (_ADDRESS, _ADDRESS, _TEXT),
    "cuFuncSetAttribute": (_ADDRESS, _WORD, _WORD),
    "cuLaunchKernelEx": (_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS),
    "cuMemsetD8Async": (_U64, ctypes.c_ubyte, _SIZE, _ADDRESS),
    "cuMemsetD16Async": (_U64, ctypes.c_ushort, _SIZE, _ADDRESS),
    "cuMemsetD32Async": (_U64, _U32, _SIZE, _ADDRESS),
    "cuMemsetD2D32Async": (_U64, _SIZE, _U32, _SIZE, _SIZE, _ADDRESS),
    "cuTensorMapEncodeTiled": (_ADDRESS, _WORD, _U32, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS,
                               _WORD, _WORD, _WORD, _WORD),
    "cuTensorMapEncodeIm2col": (_ADDRESS, _WORD, _U32, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS,
                                _U32, _U32, _ADDRESS, _WORD, _WORD, _WORD, _WORD),
    "cuThreadExchangeStreamCaptureMode": (_ADDRESS,),
    "cuDevicePrimaryCtxRetain": (_ADDRESS, _WORD),
    "cuCtxSetCurrent": (_ADDRESS,),
    "cuGetErrorName": (_WORD, _ADDRESS),
}
_NO_CONTEXT = 201  # this thread has not used a GPU yet
_SHARED, _ANY_CLUSTER = 8, 14  # attributes of a function
_COOPERATIVE, _CLUSTER, _OVERLAP = 2, 4, 6  # attributes of a launch
_PLAIN_CLUSTER = 8
_PROMOTE_TO_128_BYTES = 2
_RELAXED = 2


class _Attribute(ctypes.Structure):
    _fields_ = [("id", _WORD), ("padding", _WORD), ("value", _U32 * 16)]


class _Settings(ctypes.Structure):
    _fields_ = [("grid", _U32 * 3), ("block", _U32 * 3), ("shared", _U32), ("stream", _ADDRESS),
                ("attributes", _ADDRESS), ("count", _U32)]


class Driver:
    """The functions of libcuda that this module uses."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., int]: ...

    def __init__(self, library: str = "libcuda.so.1") -> None:
        self.library = ctypes.CDLL(library)
        for name, types in _FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, _WORD
            setattr(self, name, function)

    def check(self, status: int, what: str) -> None:
        if status:
            name = ctypes.c_char_p()
            self.cuGetErrorName(status, ctypes.byref(name))
            told = (name.value or b"an unknown error").decode()
            raise RuntimeError(f"{what}: {told} ({status})")

    def enter(self, device: int) -> None:
        """Makes PyTorch's context of the GPU current in this thread."""
        context = _ADDRESS()
        self.check(self.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "opening the GPU")
        self.check(self.cuCtxSetCurrent(context), "opening the GPU")


class _Map:
    """A tensor map: 128 bytes at a multiple of 64, encoded again if its tensor has another address."""

    def __init__(self, driver: Driver, buffer: int, fields: dict[str, Any]) -> None:
        self.driver, self.buffer = driver, buffer
        self.address: Optional[int] = None
        self.memory = ctypes.create_string_buffer(192)
        self.place = (ctypes.addressof(self.memory) + 63) // 64 * 64
        rank = len(fields["sizes"])
        self.type, self.rank, self.swizzle = fields["type"], rank, fields["swizzle"]
        sizes, pitches = (_U64 * rank)(*fields["sizes"]), (_U64 * rank)(*fields["pitches"], 0)
        pixels, box = fields.get("im2col"), fields["box"]
        self.make: Callable[..., int] = driver.cuTensorMapEncodeTiled
        self.arrays: tuple[Any, ...] = (sizes, pitches, (_U32 * rank)(*box), (_U32 * rank)(*[1] * rank))
        if pixels:  # im2col mode: the corners, the channels and pixels of a box, and the steps
            self.make = driver.cuTensorMapEncodeIm2col
            self.arrays = (sizes, pitches, (_WORD * 3)(*pixels["lower"]), (_WORD * 3)(*pixels["upper"]),
                           box[0], box[1], (_U32 * rank)(*pixels["steps"]))

    def encode(self, address: int) -> None:
        if address == self.address:
            return
        status = self.make(self.place, self.type, self.rank, address, *self.arrays, 0, self.swizzle,
                           _PROMOTE_TO_128_BYTES, 0)
        self.driver.check(status, "making a tensor map")
        self.address = address


class _Call:
    """The launches of one shape, with memory for their arguments. Serves one call at a time."""

    def __init__(self, program: "Program", shape: dict[str, Any]) -> None:
        self.driver = program.driver
        self.kept: list[Any] = []  # memory that the launches point to
        self.maps: list[_Map] = []
        self.steps: list[_Step] = []
        self.pointers = (_U64 * shape["buffers"])()
        for step in shape["steps"]:
            self.steps.append(self.fill(step) if "fill" in step else self.launch(program, step))

    def place_of(self, argument: dict[str, Any]) -> int:
        """The address from which the launch reads an argument."""
        if "map" in argument:
            made = _Map(self.driver, argument["buffer"], argument["map"])
            self.maps.append(made)
            return made.place
        if "buffer" in argument:
            return ctypes.addressof(self.pointers) + 8 * argument["buffer"]
        value = bytes.fromhex(argument["value"])
        self.kept.append(ctypes.create_string_buffer(value, len(value)))
        return ctypes.addressof(self.kept[-1])

    def launch(self, program: "Program", step: dict[str, Any]) -> _Step:
        places = [self.place_of(a) for a in step["args"]]
        arguments = (_ADDRESS * max(1, len(places)))(*places)
        attributes = (_Attribute * 3)()
        settings = _Settings((_U32 * 3)(*step["grid"]), (_U32 * 3)(*step["block"]), step["shared"], None,
                             ctypes.addressof(attributes), 0)
        wanted = []
        if max(step["cluster"]) > 1:
            wanted.append((_CLUSTER, step["cluster"]))
        if step["cooperative"]:
            wanted.append((_COOPERATIVE, [1]))
        if step["pdl"]:
            wanted.append((_OVERLAP, [1]))
        for number, (key, values) in enumerate(wanted):
            attributes[number].id = key
            attributes[number].value[: len(values)] = values
        settings.count = len(wanted)
        self.kept += [arguments, attributes, settings]
        function, call = program.function(step), self.driver.cuLaunchKernelEx
        at, values = ctypes.addressof(settings), ctypes.addressof(arguments)

        def run(stream: int) -> int:
            settings.stream = stream
            return call(at, function, values, None)

        return run

    def fill(self, step: dict[str, Any]) -> _Step:
        """Fills a buffer with a pattern of 1, 2, 4 or 8 bytes."""
        driver, pointers, index = self.driver, self.pointers, step["fill"]
        pattern, size = bytes.fromhex(step["pattern"]), step["bytes"]
        width = len(pattern)
        if width == 8 and pattern[:4] == pattern[4:]:
            pattern, width = pattern[:4], 4
        words = [int.from_bytes(pattern[i : i + 4], "little") for i in range(0, width, 4)]
        count = size // width
        if width < 8:
            names = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}
            function = getattr(driver, names[width])
            return lambda stream: function(pointers[index], words[0], count, stream)

        def halves(stream: int) -> int:
            function, at = driver.cuMemsetD2D32Async, pointers[index]
            return function(at, 8, words[0], 1, count, stream) or function(at + 4, 8, words[1], 1, count, stream)

        return halves

    def run(self, pointers: list[int], stream: int, device: int) -> None:
        self.pointers[:] = pointers
        for made in self.maps:
            made.encode(pointers[made.buffer])
        for step in self.steps:
            status = step(stream)
            if status == _NO_CONTEXT:
                self.driver.enter(device)
                status = step(stream)
            if status:
                self.driver.check(status, "launching an exported kernel")


class Program:
    """The kernels of a program, loaded on one GPU. `images`: for each module, the images to try in turn."""

    def __init__(self, driver: Driver, data: dict[str, Any], images: list[list[bytes]], device: int) -> None:
        self.driver, self.data, self.device = driver, data, device
        self.functions: dict[tuple[Any, ...], Any] = {}
        self.calls: list[dict[int, _Call]] = [{} for _ in data["shapes"]]
        driver.enter(device)
        mode = _WORD(_RELAXED)  # loading must not become part of a graph that is being captured
        driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        self.modules = [self.load(texts) for texts in images]
        for shape in data["shapes"]:
            for step in shape["steps"]:
                if "kernel" in step:
                    self.prepare(step)
        driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def load(self, texts: list[bytes]) -> ctypes.c_void_p:
        module, status = _ADDRESS(), 0
        for text in texts:
            status = self.driver.cuModuleLoadData(ctypes.byref(module), text)
            if not status:
                return module
        self.driver.check(status, "loading the exported kernels")
        return module

    def function(self, step: dict[str, Any]) -> Any:
        return self.functions[step["module"], step["kernel"]]

    def prepare(self, step: dict[str, Any]) -> None:
        key = step["module"], step["kernel"]
        if key not in self.functions:
            found = _ADDRESS()
            name = step["kernel"].encode()
            status = self.driver.cuModuleGetFunction(ctypes.byref(found), self.modules[step["module"]], name)
            self.driver.check(status, f"finding the kernel {step['kernel']}")
            self.functions[key] = found
        shared, cluster = step["shared"], step["cluster"]
        granted = ("shared", *key)
        if shared > self.functions.get(granted, 0):  # also below 48 KiB, because static shared memory counts, too
            self.functions[granted] = shared
            status = self.driver.cuFuncSetAttribute(self.functions[key], _SHARED, shared)
            self.driver.check(status, f"giving {step['kernel']} its shared memory")
        if cluster[0] * cluster[1] * cluster[2] > _PLAIN_CLUSTER:
            status = self.driver.cuFuncSetAttribute(self.functions[key], _ANY_CLUSTER, 1)
            self.driver.check(status, f"giving {step['kernel']} its clusters")

    def run(self, number: int, pointers: list[int], stream: int) -> None:
        """Queues all launches of shape `number`. Concurrent calls use separate memory."""
        free = self.calls[number]
        call = free.pop(0, None) or _Call(self, self.data["shapes"][number])
        call.run(pointers, stream, self.device)
        free[0] = call


def gpu_trouble(data: dict[str, Any], device: int) -> Optional[str]:
    """Why the program does not run on this GPU, or None."""
    wanted, have = data["gpu"], torch.cuda.get_device_properties(device)
    if [have.major, have.minor] == wanted["capability"] and have.multi_processor_count == wanted["sms"]:
        return None
    return (f"it was made for {wanted['name']} (compute capability {wanted['capability'][0]}."
            f"{wanted['capability'][1]}, {wanted['sms']} multiprocessors), this is {have.name}")
