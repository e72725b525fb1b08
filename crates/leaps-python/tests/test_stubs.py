"""The type stub says what the compiled module has, and the package says what it exports."""

import ast
import importlib.resources

import leaps
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
        assert own == {member for member in dir(getattr(_leaps, name)) if not member.startswith("_")}, name


def test_the_package_is_typed_and_exports_what_it_says():
    assert importlib.resources.files(leaps).joinpath("py.typed").is_file()
    assert sorted(leaps.__all__) == leaps.__all__
    assert all(hasattr(leaps, name) for name in leaps.__all__)


def test_keywords_are_the_librarys():
    assert {"walkers", "intervals", "kernel", "schedule", "seed"} <= set(_leaps.keys_of("ais"))
    assert "ess_threshold" not in _leaps.keys_of("ais") and "ess_threshold" in _leaps.keys_of("smc")
