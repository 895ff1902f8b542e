# SPDX-License-Identifier: Apache-2.0
"""Frames over a Unix stream socket: 4-byte little-endian length, JSON, descriptors beside it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]  # a message, or an object within one
Answer = tuple[Json, int | None]  # a reply, and a descriptor to send with it

MAX_FRAME = 64 << 20
MOST_DESCRIPTORS = 8


class Closed(Exception):
    """The other side went away."""


class Channel:
    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)

    def receive(self) -> Json:
        body, descriptors = self.receive_all()
        for fd in descriptors:
            os.close(fd)
        return body

    def receive_all(self) -> tuple[Json, list[int]]:
        """Returns (body, the descriptors that came with it)."""
        header, descriptors = self._header()
        length = int.from_bytes(header, "little")
        if length > MAX_FRAME:
            raise Closed()
        return json.loads(self._exactly(length)), descriptors

    def send(self, body: Json, fds: Sequence[int] = ()) -> None:
        text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        if len(text) > MAX_FRAME:
            raise ValueError(f"the reply of {len(text)} bytes is over the limit of {MAX_FRAME}")
        data = len(text).to_bytes(4, "little") + text
        if fds:
            sent = socket.send_fds(self.socket, [data], fds)
            data = data[sent:]
        self.socket.sendall(data)

    def _header(self) -> tuple[bytes, list[int]]:
        header, descriptors, _, _ = socket.recv_fds(self.socket, 4, MOST_DESCRIPTORS)
        if not header:
            raise Closed()
        for fd in descriptors:
            os.set_inheritable(fd, False)
        return header + self._exactly(4 - len(header)), descriptors

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.socket.recv(min(count, 1 << 20))
            if not part:
                raise Closed()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
