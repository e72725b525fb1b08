"""The type stub says what the compiled module has, and the package says what it exports."""

import ast
import importlib.resources
import inspect
import os
import subprocess
import sys

import leaps
import pytest
from leaps import _leaps


def stub():
    text = importlib.resources.files(leaps).joinpath("_leaps.pyi").read_text()
    names, members = set(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            members[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names, members


def test_the_stub_has_every_name():
    names, members = stub()
    hidden = {"__doc__", "__file__", "__loader__", "__name__", "__package__", "__spec__", "__all__"}
    assert names == set(dir(_leaps)) - hidden
    for name, own in members.items():
        there = dir(getattr(_leaps, name))
        # Those with underscores that the stub has, too; objects have many more of them.
        assert own == {member for member in there if not member.startswith("_") or member in own}, name


def said(function):
    """Names and defaults of a stub's arguments."""
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.literal_eval(value) for value in function.args.defaults]
    return names, dict(zip(names[len(names) - len(defaults) :], defaults))


def taken(function):
    """Names and defaults of what is there."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters], {one.name: one.default for one in parameters if one.default is not one.empty}


def test_the_stub_has_every_argument():
    text = importlib.resources.files(leaps).joinpath("_leaps.pyi").read_text()
    seen = 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            assert said(node) == taken(getattr(_leaps, node.name)), node.name
            seen += 1
        for item in node.body if isinstance(node, ast.ClassDef) else []:
            is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in getattr(item, "decorator_list", []))
            if isinstance(item, ast.FunctionDef) and not is_property:
                owner = getattr(_leaps, node.name)
                names, defaults = said(item)
                # The signature of a class is that of what makes it, without the class.
                there = (names[1:], defaults) == taken(owner) if item.name == "__new__" else (names, defaults) == taken(getattr(owner, item.name))
                assert there, f"{node.name}.{item.name}"
                seen += 1
    assert seen > 20


def test_the_stub_is_what_mypy_finds(tmp_path):
    pytest.importorskip("mypy")
    # Classes of the compiled half can be neither inherited from nor made but by its functions.
    known = tmp_path / "known"
    known.write_text("leaps._leaps.Model\nleaps._leaps.Problem\nleaps._leaps.Run\nleaps._leaps.__all__\n")
    words = [sys.executable, "-m", "mypy.stubtest", "leaps._leaps", "--allowlist", str(known), "--ignore-unused-allowlist"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPY_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed_and_exports_what_it_says():
    assert importlib.resources.files(leaps).joinpath("py.typed").is_file()
    assert sorted(leaps.__all__) == leaps.__all__
    assert all(hasattr(leaps, name) for name in leaps.__all__)


def test_keywords_are_the_librarys():
    assert {"walkers", "intervals", "kernel", "schedule", "seed"} <= set(_leaps.keys_of("ais"))
    assert "ess_threshold" not in _leaps.keys_of("ais") and "ess_threshold" in _leaps.keys_of("smc")
