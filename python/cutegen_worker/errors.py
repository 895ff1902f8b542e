# SPDX-License-Identifier: Apache-2.0
"""Errors as cutegen shows them: cause, place and remedy."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator


class WorkerError(Exception):
    def __init__(self, message: str, where: str = "", remedy: str = "", kind: str = "user") -> None:
        super().__init__(message)
        self.message, self.where, self.remedy, self.kind = message, where, remedy, kind

    def json(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "message": self.message,
            "where": self.where,
            "remedy": self.remedy,
        }


def first_line(text: object) -> str:
    lines = [line.strip() for line in str(text).strip().splitlines() if line.strip()]
    return lines[0][:500] if lines else ""


def place(error: BaseException, file: str) -> str:
    """FILE:LINE of the deepest frame in the task file; FILE if there is none."""
    line = 0
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            line = number
    return f"{file}:{line}" if line else file


@contextlib.contextmanager
def blame(file: str, doing: str, remedy: str) -> Iterator[None]:
    """Turns any exception from the task file into a user error that names the line."""
    try:
        yield
    except WorkerError:
        raise
    except MemoryError as error:
        raise WorkerError(
            f"{doing} needs more memory than a task may use",
            place(error, file),
            "use smaller sizes, or make large tensors with torch, not with Python or NumPy",
        ) from None
    except SystemExit as error:
        raise WorkerError(
            f"{doing} ends the program (sys.exit)",
            place(error, file),
            "move code that runs the file under `if __name__ == '__main__':`",
        ) from None
    except ModuleNotFoundError as error:
        raise WorkerError(
            f"{doing} imports '{error.name}', which this Python lacks",
            place(error, file),
            f"install {error.name} there, or name another interpreter: --python",
        ) from None
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything
        if type(error).__name__ == "OutOfMemoryError":  # torch's error for GPU memory; the file is not to blame
            raise
        text = first_line(error)
        name = type(error).__name__
        raise WorkerError(
            f"{doing} raises {name}" + (f": {text}" if text else ""), place(error, file), remedy
        ) from None
