# SPDX-License-Identifier: Apache-2.0
"""Finds the module-level constants of task files, and runs the files with other constants."""

from __future__ import annotations

import ast
import linecache
import os
import random
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .errors import WorkerError, blame

Place = tuple[str, int, Callable[[int], None]]  # name, value, setter

MODULE = "cutegen_task"
NAMES = ("Model", "get_inputs", "get_init_inputs")
REMEDY = "a task file defines Model, get_inputs() and get_init_inputs(); see docs/tasks.md"

LEAST_LITERAL = 8  # smaller literals are probably axes, counts or kernel sizes
MAKERS = {"randn", "rand", "randint", "zeros", "ones", "empty", "full"}

REMEDY_RUN = "correct the file so that `python FILE` runs"


def fold(node: ast.AST) -> int | None:
    """The value of an expression of integer literals; None for any other."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    a, b = fold(node.left), fold(node.right)
    if a is None or b is None or abs(a) > 1 << 62 or abs(b) > 1 << 62:
        return None
    if isinstance(node.op, ast.Mult):
        return a * b
    if isinstance(node.op, ast.Add):
        return a + b
    if isinstance(node.op, ast.Sub):
        return a - b
    if isinstance(node.op, ast.FloorDiv) and b:
        return a // b
    if isinstance(node.op, ast.Pow) and 0 <= b < 63 and abs(a) <= 16:
        return a**b
    if isinstance(node.op, ast.LShift) and 0 <= b < 63:
        return a << b
    return None


def places(tree: ast.Module) -> Iterator[Place]:
    """Yields (name, value, setter) of every module-level integer. Items of tuples and lists are NAME.0 and so on.

    Literals of at least 8 in get_inputs and get_init_inputs count, too, as get_inputs.0. Smaller literals count
    if they begin a tensor's shape in get_inputs, as get_inputs.lead0.
    """
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in NAMES[1:]:
            yield from literals(statement)
        if isinstance(statement, ast.FunctionDef) and statement.name == NAMES[1]:
            yield from leading(statement)
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]  # in `height = width = 128`, the first name stands for both
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target = statement.target
        else:
            continue
        value: Any = statement.value
        sequence = isinstance(value, (ast.Tuple, ast.List))
        if isinstance(target, ast.Name) and not sequence:
            yield from one(target.id, statement, "value", value)
        elif isinstance(target, ast.Name):
            for i, item in enumerate(value.elts):
                yield from one(f"{target.id}.{i}", value.elts, i, item)
        elif isinstance(target, (ast.Tuple, ast.List)) and sequence:
            for i, (name, item) in enumerate(zip(target.elts, value.elts)):
                if isinstance(name, ast.Name):
                    yield from one(name.id, value.elts, i, item)


def model_places(tree: ast.Module) -> Iterator[Place]:
    """Yields (name, value, setter) of the literals of at least 8 in Model's functions, as __init__.0 and so on."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == NAMES[0]:
            for function in statement.body:
                if isinstance(function, ast.FunctionDef):
                    yield from literals(function)


def literals(function: ast.FunctionDef) -> Iterator[Place]:
    """Yields the sizes in a function's body, in source order."""
    for i, (node, owner, key) in enumerate(literal_places(function)):
        yield from one(f"{function.name}.{i}", owner, key, node)


def positions(tree: ast.Module) -> dict[str, tuple[int, int]]:
    """Where the literals of get_inputs stand among the arguments of a call, or in a tuple: {name: (index from the
    front, index from the end)}."""
    return {f"{function.name}.{i}": (key, key - len(owner))
            for function in tree.body if isinstance(function, ast.FunctionDef) and function.name == NAMES[1]
            for i, (_, owner, key) in enumerate(literal_places(function)) if isinstance(key, int)}


def parameters(tree: ast.Module) -> dict[str, str]:
    """The parameter of Model.__init__ that receives each constant of get_init_inputs: {constant: parameter}.

    A constant is a literal or the name of a module-level constant in the returned list.
    """
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    init = next((f for c in tree.body if isinstance(c, ast.ClassDef) and c.name == NAMES[0] for f in c.body
                 if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    returned = next((n.value for n in ast.walk(functions[NAMES[2]]) if isinstance(n, ast.Return)),
                    None) if NAMES[2] in functions else None
    if init is None or not isinstance(returned, (ast.List, ast.Tuple)):
        return {}
    literals = {id(node): f"{NAMES[2]}.{i}" for i, (node, _, _) in enumerate(literal_places(functions[NAMES[2]]))}
    return {node.id if isinstance(node, ast.Name) else literals[id(node)]: parameter.arg
            for parameter, value in zip(init.args.args[1:], returned.elts) for node in ast.walk(value)
            if isinstance(node, ast.Name) or id(node) in literals}


def literal_places(function: ast.FunctionDef) -> list[tuple[Any, Any, int | str]]:
    """(node, owner, key) of each size in a function's body, in source order. The owner holds the node: a list at the
    index `key`, or a node in the field `key`."""
    found: list[tuple[Any, Any, int | str]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.UnaryOp):  # -100 marks labels that a loss ignores and is not a size
            continue
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                found += [(v, value, i) for i, v in enumerate(value) if isinstance(v, ast.Constant)]
            elif isinstance(value, ast.Constant):
                found.append((value, node, field))
    found = [f for f in found if type(f[0].value) is int and f[0].value >= LEAST_LITERAL]
    return sorted(found, key=lambda f: (f[0].lineno, f[0].col_offset))


def leading(function: ast.FunctionDef) -> Iterator[Place]:
    """Yields literals from 2 to 7 that begin the shape of a tensor, such as the 4 in torch.randn(4, 4096)."""
    found: list[tuple[Any, Any]] = []
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in MAKERS:
            continue
        shapes = [a.elts for a in call.args if isinstance(a, (ast.Tuple, ast.List)) and a.elts]
        shapes += [k.value.elts for k in call.keywords
                   if k.arg == "size" and isinstance(k.value, (ast.Tuple, ast.List)) and k.value.elts]
        if not shapes and len(call.args) > 1 and call.func.attr != "randint":
            shapes = [call.args]
        found += [(dims[0], dims) for dims in shapes if isinstance(dims[0], ast.Constant)]
    found = [f for f in found if type(f[0].value) is int and 2 <= f[0].value < LEAST_LITERAL]
    found.sort(key=lambda f: (f[0].lineno, f[0].col_offset))
    for i, (node, owner) in enumerate(found):
        yield from one(f"{function.name}.lead{i}", owner, 0, node)


def one(name: str, owner: Any, key: int | str, node: Any) -> Iterator[Place]:
    number = fold(node)
    if number is None:
        return

    def put(new: int) -> None:
        made = ast.copy_location(ast.Constant(new), node)
        if isinstance(key, int):
            owner[key] = made
        else:
            setattr(owner, key, made)

    yield name, number, put


class Source:
    """The parsed text of a task file."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        if not text.strip():
            raise WorkerError("the file is empty", file, REMEDY)
        tree = self.parse()
        self.constants = {name: value for name, value, _ in places(tree)}
        self.model_sizes = {name: value for name, value, _ in model_places(tree)}
        self.positions = positions(tree)
        self.parameters = parameters(tree)
        self.check(tree)

    def parse(self) -> ast.Module:
        try:
            return ast.parse(self.text, self.file)
        except SyntaxError as error:
            raise WorkerError(
                f"the file does not parse: {error.msg}",
                f"{self.file}:{error.lineno or 1}:{error.offset or 1}",
                "correct the Python syntax",
            ) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise WorkerError(f"the file does not parse: {error}", self.file, REMEDY) from None

    def check(self, tree: ast.Module) -> None:
        """Refuses a file without the required names. Star imports and assignments may define them, too."""
        found: set[str | None] = set()
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.add(node.name)
            elif not isinstance(node, ast.Expr):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name):
                        found.add(inner.id)
                    elif isinstance(inner, ast.alias):
                        found.update((inner.name, inner.asname))
        for name in NAMES:
            if name not in found and "*" not in found and name != "get_init_inputs":
                raise WorkerError(f"the file has no {name}", self.file, REMEDY)

    def run(self, constants: Mapping[str, int]) -> types.ModuleType:
        """Executes the file as a module, with these constants instead of its own."""
        tree = self.parse()
        unknown = [name for name in constants if name not in self.constants and name not in self.model_sizes]
        if unknown:
            known = ", ".join(self.constants) or "none"
            raise WorkerError(
                f"the file has no integer constant '{unknown[0]}' at module level",
                self.file,
                f"its constants: {known}",
            )
        for name, _, put in [*places(tree), *model_places(tree)]:
            if name in constants:
                put(constants[name])
        module = types.ModuleType(MODULE)
        module.__file__ = self.file
        sys.modules[MODULE] = module
        lines = self.text.splitlines(keepends=True)
        linecache.cache[self.file] = (len(self.text), None, lines, self.file)
        with blame(self.file, "the file", REMEDY_RUN):
            exec(compile(tree, self.file, "exec"), module.__dict__)  # noqa: S102
        for name in NAMES[:2]:
            if not callable(getattr(module, name, None)):
                raise WorkerError(f"the file has no {name}", self.file, REMEDY)
        if not (isinstance(module.Model, type) and issubclass(module.Model, torch.nn.Module)):
            raise WorkerError("Model is not a torch.nn.Module", self.file, REMEDY)
        return module


class clean_state:
    """Restores what a task file may have changed in this process."""

    def __init__(self, file: str) -> None:
        self.folder = os.path.dirname(os.path.abspath(file))

    def __enter__(self) -> clean_state:
        self.modules = set(sys.modules)
        self.path, self.environment, self.cwd = list(sys.path), dict(os.environ), os.getcwd()
        self.streams = sys.stdout, sys.stderr
        self.limit = sys.getrecursionlimit()
        self.random = random.getstate(), torch.random.get_rng_state()
        sys.path.insert(0, self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        for name in set(sys.modules) - self.modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if name == MODULE or file.startswith(self.folder + os.sep):
                del sys.modules[name]
        sys.path[:] = self.path
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        os.chdir(self.cwd)
        sys.stdout, sys.stderr = self.streams
        sys.setrecursionlimit(self.limit)
        random.setstate(self.random[0])
        torch.random.set_rng_state(self.random[1])
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        if torch.are_deterministic_algorithms_enabled():  # the call imports torch's compiler
            torch.use_deterministic_algorithms(False)
        torch.autograd.set_detect_anomaly(False)
