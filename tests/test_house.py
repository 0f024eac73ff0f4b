"""The rules of the house, checked over its sources.

A rule is a function from a House to complaints, each naming file and line, what is wrong and what to do. The real house
must give no complaint; and for every rule a small house with a planted violation must give one, so the rules can fail.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import pytest

import sateen
from sateen.core import errors

ROOT: Final = Path(__file__).resolve().parents[1]
MOST_LINES: Final = 400
FIRST_SCREEN: Final = 40  # lines of README.md

# Who sees whom. A room sees itself too. "" is the root: the public names, as any user has them.
SEEN_BY: Final = {
    "core": set(),
    "language": {"core"},
    "files": {"core"},
    "pools": {"core"},
    "model": {"core", "language", "files"},
    "logic": {"core", "language"},
    "engine": {"core", "language", "model", "logic"},
    "sampling": {"core", "language", "files", "pools", "model", "logic", "engine"},
    "learning": {"core", "files"},
    "guarantee": {"core", "files"},
    "decision": {
        "core",
        "files",
        "pools",
        "language",
        "model",
        "logic",
        "engine",
        "sampling",
        "learning",
        "guarantee",
    },
    "assess": {"core"},
    "pipeline": {"core", "files", "pools"},
    "study": {
        "core",
        "files",
        "pools",
        "model",
        "logic",
        "engine",
        "sampling",
        "learning",
        "guarantee",
        "decision",
        "assess",
        "pipeline",
    },
    "plot": {"core"},
    "report": {"", "core", "files", "plot", "study"},
    "serve": {"", "core", "files", "pools", "model", "sampling", "learning", "pipeline", "study"},
    "paper": {"", "pipeline", "plot"},
    "cli": {
        "",
        "core",
        "files",
        "pools",
        "language",
        "model",
        "logic",
        "learning",
        "guarantee",
        "decision",
        "assess",
        "study",
        "plot",
        "report",
        "serve",
        "paper",
    },
}
SEES_ALL: Final = {""}  # only the files at the root see the whole house
# The networks, and the paper's SVI-GP, which is trained as they are; and what SVI-GP does on a GPU.
NETWORK_FILES: Final = ("learning/networks/", "learning/gp/faithful")
GPU_FILES: Final = (*NETWORK_FILES, "learning/gp/accelerated")
LIBRARY_HOMES: Final = {
    "jax": GPU_FILES,
    "optax": NETWORK_FILES,
    "llvmlite": ("engine/",),
    "matplotlib": ("plot/",),
    "libsbml": ("model/sbml",),
    "antimony": ("model/antimony",),
    "plotly": ("report/",),
    "jinja2": ("report/",),
    "dask": ("pools/cluster",),
    "distributed": ("pools/cluster",),
    "starlette": ("serve/app",),
    "uvicorn": ("serve/app",),
}
MOST_SINGLE_IMPORTERS: Final = 0.1  # of all modules: those that only one other imports, registered ones left out
HEAVY: Final = {
    *(
        "jax",
        "optax",
        "safetensors",
        "llvmlite",
        "scipy",
        "matplotlib",
        "lark",
        "pandas",
        "rich",
        "libsbml",
        "antimony",
    ),
    *("msgspec", "jinja2", "plotly", "dask", "distributed", "starlette", "uvicorn"),
}
FOUND_BY_NAME: Final = {"__init__.py", "core/registry.py"}  # may import a module whose name is computed
PICKLERS: Final = {"pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
PRINTERS: Final = ("print", "sys.stdout", "sys.stderr", "click.echo", "click.secho", "rich.print", "rich.console")
NUMPY_RANDOM: Final = {
    "Generator",
    "BitGenerator",
    "SeedSequence",
    "default_rng",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "SFC64",
}


@dataclass(frozen=True)
class Source:
    """One file of the house: its path from the package on, and its tree."""

    file: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.file)

    @property
    def room(self) -> str:
        """The room it stands in; "" for the files at the root."""
        return self.file.partition("/")[0] if "/" in self.file else ""

    def complain(self, line: int, what: str) -> str:
        return f"src/sateen/{self.file}:{line}: {what}"

    @cached_property
    def imports(self) -> list[tuple[int, str, str]]:
        """Line, absolute module and bound name of every import, wherever it stands; names given as text too."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [(node.lineno, a.name, a.asname or a.name.partition(".")[0]) for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                found += [(node.lineno, f"{origin}.{a.name}", a.asname or a.name) for a in node.names]
            elif isinstance(node, ast.Call) and self._last_name(node.func) in {"import_module", "__import__"}:
                first = node.args[0] if node.args else None
                literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
                found.append((node.lineno, first.value if literal else "?", ""))
        return found

    @cached_property
    def for_type_checkers(self) -> set[int]:
        """The lines under `if TYPE_CHECKING`."""
        guarded = [n for n in ast.walk(self.tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
        return {line for node in guarded for part in node.body for line in range(part.lineno, part.end_lineno + 1)}

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = ["sateen", *self.file.split("/")[:-1]]
        kept = package[: len(package) - node.level + 1]
        return ".".join([*kept, node.module] if node.module else kept)

    @staticmethod
    def _last_name(node: ast.expr) -> str:
        return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""

    @cached_property
    def uses(self) -> list[tuple[int, str, ast.expr, bool]]:
        """Line, full dotted name, node of every name that is read, and whether it is read inside a function."""
        bound = {name: module for _, module, name in self.imports if name and name != module.partition(".")[0]}
        found: list[tuple[int, str, ast.expr, bool]] = []

        def visit(node: ast.AST, inside: bool) -> None:
            if isinstance(node, ast.Name | ast.Attribute):
                dotted = ast.unparse(node)
                if re.fullmatch(r"[\w.]+", dotted):
                    head, dot, rest = dotted.partition(".")
                    found.append((node.lineno, bound.get(head, head) + dot + rest, node, inside))
                    return
                found.append((node.lineno, f"?.{self._last_name(node)}", node, inside))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                body = node.body if isinstance(node.body, list) else [node.body]
                for child in ast.iter_child_nodes(node):
                    visit(child, inside or child in body)  # defaults and decorators are evaluated outside
                return
            for child in ast.iter_child_nodes(node):
                visit(child, inside)

        visit(self.tree, False)
        return found


@dataclass(frozen=True)
class House:
    """The sources under a folder that stands for `src/sateen`."""

    folder: Path

    @cached_property
    def sources(self) -> list[Source]:
        files = sorted(self.folder.rglob("*.py"))
        return [Source(file.relative_to(self.folder).as_posix(), file.read_text(encoding="utf-8")) for file in files]

    @cached_property
    def rooms(self) -> list[str]:
        return sorted({source.room for source in self.sources} - {""})

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Every module with the modules that it imports, at the top or inside a function, but not for type checkers."""
        names = {
            "sateen." + source.file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): source
            for source in self.sources
            if source.file not in ("__init__.py", "__main__.py")
        }
        graph: dict[str, set[str]] = {}
        for name, source in names.items():
            targets = {module for line, module, _ in source.imports if line not in source.for_type_checkers}
            reached = {target if target in names else target.rpartition(".")[0] for target in targets}
            graph[name] = (reached & set(names)) - {name}
        return graph

    def room_of(self, module: str) -> str | None:
        """The room a module of sateen stands in, "" for the root, None for what is not sateen's."""
        head, _, rest = module.partition(".")
        room = rest.partition(".")[0]
        return None if head != "sateen" else room if room in self.rooms or room in SEEN_BY else ""


Rule = Callable[[House], Iterator[str]]


def walls(house: House) -> Iterator[str]:
    for source in house.sources:
        if source.room in SEES_ALL:
            continue
        seen = SEEN_BY.get(source.room)
        if seen is None:
            yield source.complain(1, f"the room {source.room} has no place yet; say in SEEN_BY which rooms it sees")
            continue
        for line, module, _ in source.imports:
            room = house.room_of(module)
            if room is None or room == source.room or room in seen:
                continue
            allowed = "only " + ", ".join(sorted(name or "public names" for name in seen)) if seen else "no room"
            yield source.complain(
                line,
                f"{source.room} imports {module}, but sees {allowed}; move what is shared to core, or pass it in",
            )


def no_import_cycles(house: House) -> Iterator[str]:
    graph = house.graph
    for circle in _circles(graph):
        first = min(circle)
        file = first.removeprefix("sateen.").replace(".", "/") + ".py"
        rest = ", ".join(sorted(circle - {first}))
        yield f"src/sateen/{file}:1: imports itself through {rest}; move what they share to a module of its own"


def few_modules_have_one_importer(house: House) -> Iterator[str]:
    importers = {name: [other for other, seen in house.graph.items() if name in seen] for name in house.graph}
    registered = {address for source in house.sources for address in re.findall(r'"(sateen\.[\w.]+)[:"]', source.text)}
    alone = [name for name, found in importers.items() if len(found) == 1 and name not in registered]
    if len(alone) >= MOST_SINGLE_IMPORTERS * len(house.graph):
        yield f"src/sateen:1: {len(alone)} modules have a single importer; join some of {', '.join(sorted(alone))}"


def _circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(graph[name])
        reach[start] = seen
    circles = {frozenset({name} | {other for other in reach[name] if name in reach[other]}) for name in graph}
    return [set(circle) for circle in circles if len(circle) > 1]


def libraries_at_home(house: House) -> Iterator[str]:
    for source in house.sources:
        for line, module, _ in source.imports:
            homes = LIBRARY_HOMES.get(module.partition(".")[0])
            if homes and not source.file.startswith(homes):
                yield source.complain(line, f"{module} is imported only in {', '.join(homes)}; call that file instead")


def imports_are_visible(house: House) -> Iterator[str]:
    for source in house.sources:
        for line, module, _ in source.imports:
            if module == "?" and source.file not in FOUND_BY_NAME:
                yield source.complain(line, "imports a module whose name is computed; write the name out")


def printing_only_in_cli(house: House) -> Iterator[str]:
    for source in house.sources:
        for line, name, _, _ in source.uses:
            if source.room != "cli" and any(name == p or name.startswith(p + ".") for p in PRINTERS):
                yield source.complain(line, f"{name}: only cli prints; return the text, or report through Progress")


def no_hidden_randomness(house: House) -> Iterator[str]:
    for source in house.sources:
        for line, module, _ in source.imports:
            if module.partition(".")[0] in {"random", "secrets"}:
                yield source.complain(line, f"{module}: draw from a numpy Generator made from a `seed` argument")
        calls = {id(node.func): node for node in ast.walk(source.tree) if isinstance(node, ast.Call)}
        for line, name, node, inside in source.uses:
            if not name.startswith("numpy.random."):
                continue
            member = name.split(".")[2]
            call = calls.get(id(node))
            if member not in NUMPY_RANDOM:
                yield source.complain(line, f"{name} is global state; use a Generator made from a `seed` argument")
            elif not inside and (call or member == "default_rng"):  # as types, the others may stand anywhere
                yield source.complain(
                    line, f"{name} outside a function is global state; make it from a `seed` argument"
                )
            elif call and not call.keywords and [ast.unparse(a) for a in call.args] in ([], ["None"]):
                yield source.complain(line, f"{name} without a seed cannot be repeated; give it the `seed` argument")


def no_global_state(house: House) -> Iterator[str]:
    for source in house.sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Global):
                yield source.complain(node.lineno, f"global {', '.join(node.names)}: pass it, or return a new object")


def no_pickle(house: House) -> Iterator[str]:
    advice = "a pickle runs code when it is read; write CSV, JSON or arrays"
    for source in house.sources:
        for line, module, _ in source.imports:
            if module.partition(".")[0] in PICKLERS:
                yield source.complain(line, f"{module}: {advice}")
        for line, name, _, _ in source.uses:
            if name.endswith("_pickle"):
                yield source.complain(line, f"{name}: {advice}")
        for node in ast.walk(source.tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
                yield source.complain(node.lineno, f"allow_pickle: {advice}")


def no_eval(house: House) -> Iterator[str]:
    for source in house.sources:
        for line, name, _, _ in source.uses:
            bare = name.removeprefix("builtins.")
            if bare in {"eval", "exec", "compile"} or name.endswith(".eval"):
                yield source.complain(
                    line, f"{name}: user text becomes an Expression tree, and only the tree emits source"
                )


def dataclasses_are_frozen(house: House) -> Iterator[str]:
    for source in house.sources:
        classes = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        for name, mark in [(node.name, mark) for node in classes for mark in node.decorator_list]:
            if Source._last_name(mark.func if isinstance(mark, ast.Call) else mark) != "dataclass":
                continue
            given = {k.arg: ast.unparse(k.value) for k in mark.keywords} if isinstance(mark, ast.Call) else {}
            if (given.get("frozen"), given.get("slots")) != ("True", "True"):
                yield source.complain(mark.lineno, f"{name}: write @dataclass(frozen=True, slots=True)")


def modules_are_short(house: House) -> Iterator[str]:
    for source in house.sources:
        lines = len(source.text.splitlines())
        if lines > MOST_LINES:
            yield source.complain(
                lines, f"{lines} lines, and {MOST_LINES} is the most; split it where its subject does"
            )


def rooms_say_what_they_are(house: House) -> Iterator[str]:
    documented = {s.room for s in house.sources if s.file.endswith("/__init__.py") and ast.get_docstring(s.tree)}
    for room in house.rooms:
        if room not in documented:
            yield f"src/sateen/{room}/__init__.py:1: write a docstring that says what the room is"


def rooms_do_not_shadow_public_names(house: House) -> Iterator[str]:
    for name in {*house.rooms, *(s.file.removesuffix(".py") for s in house.sources if not s.room)}:
        if name in sateen.__all__ and name != "__version__":
            yield f"src/sateen/{name}: sateen.{name} is public, and importing the module would replace it; rename it"


HOUSE: Final = House(ROOT / "src" / "sateen")


def obey(rule: Rule) -> None:
    complaints = list(rule(HOUSE))
    assert not complaints, "\n".join(["", *complaints])


def test_the_house_is_found():
    assert {"core", "model", "logic", "engine"} <= set(HOUSE.rooms)


def test_a_room_imports_only_the_rooms_it_sees_and_core_imports_none():
    obey(walls)


def test_no_module_imports_itself_through_others():
    obey(no_import_cycles)


def test_few_modules_have_a_single_importer():
    obey(few_modules_have_one_importer)


def test_jax_llvm_and_matplotlib_stay_at_home():
    obey(libraries_at_home)


def test_every_import_is_in_sight():
    obey(imports_are_visible)


def test_only_the_command_line_prints():
    obey(printing_only_in_cli)


def test_randomness_comes_only_from_a_seed():
    obey(no_hidden_randomness)


def test_there_is_no_global_state():
    obey(no_global_state)


def test_nothing_is_pickled():
    obey(no_pickle)


def test_no_text_is_run_as_python():
    obey(no_eval)


def test_dataclasses_are_frozen_and_slotted():
    obey(dataclasses_are_frozen)


def test_modules_are_short():
    obey(modules_are_short)


def test_every_room_says_what_it_is():
    obey(rooms_say_what_they_are)


def test_no_room_bears_a_public_name():
    obey(rooms_do_not_shadow_public_names)


@pytest.mark.parametrize(
    ("rule", "file", "text", "line", "words"),
    [
        (walls, "core/a.py", "import sateen.model.model", 1, "core imports sateen.model.model"),
        (walls, "core/a.py", "def f():\n    from ..plot import figures", 2, "sateen.plot.figures"),
        (walls, "core/a.py", "from sateen import Model", 1, "sees no room"),
        (walls, "core/a.py", "from importlib import import_module\nimport_module('sateen.plot')", 2, "sateen.plot"),
        (walls, "logic/a.py", "if TYPE_CHECKING:\n    from sateen.engine import simulate", 2, "sees only core"),
        (walls, "paper/a.py", "from sateen.learning.gp import svi_gp", 1, "paper imports sateen.learning.gp.svi_gp"),
        (walls, "study/a.py", "from sateen.report import page", 1, "study imports sateen.report.page"),
        (walls, "cli/a.py", "from sateen.engine import run", 1, "cli imports sateen.engine.run"),
        (walls, "model/a.py", "from sateen.cli import main", 1, "sateen.cli.main"),
        (walls, "engine/deep/a.py", "from ...sampling import observe", 1, "engine imports sateen.sampling.observe"),
        (walls, "attic/a.py", "", 1, "attic has no place yet"),
        (libraries_at_home, "core/a.py", "import llvmlite as nb", 1, "llvmlite is imported only in engine/"),
        (walls, "serve/a.py", "from sateen.engine import run", 1, "serve imports sateen.engine.run"),
        (libraries_at_home, "serve/worker.py", "from starlette.routing import Route", 1, "only in serve/app"),
        (libraries_at_home, "report/page.py", "from matplotlib import cm", 1, "only in plot/"),
        (libraries_at_home, "learning/likelihood.py", "def f():\n    import jax.numpy", 2, "jax.numpy"),
        (imports_are_visible, "core/a.py", "import importlib\nimportlib.import_module(name)", 2, "write the name out"),
        (printing_only_in_cli, "core/a.py", "print('x')", 1, "only cli prints"),
        (printing_only_in_cli, "core/a.py", "from sys import stderr\nstderr.write('x')", 2, "sys.stderr"),
        (printing_only_in_cli, "core/a.py", "import click as c\ndef f():\n    c.echo('x')", 3, "click.echo"),
        (no_hidden_randomness, "core/a.py", "import random", 1, "random"),
        (
            no_hidden_randomness,
            "core/a.py",
            "import numpy as np\ndef f():\n    np.random.seed(1)",
            3,
            "numpy.random.seed",
        ),
        (no_hidden_randomness, "core/a.py", "from numpy.random import default_rng\nrng = default_rng(1)", 2, "outside"),
        (no_hidden_randomness, "core/a.py", "import numpy\ndef f(g=numpy.random.default_rng(1)): ...", 2, "outside"),
        (
            no_hidden_randomness,
            "core/a.py",
            "import numpy as n\ndef f():\n    n.random.default_rng()",
            3,
            "without a seed",
        ),
        (no_global_state, "core/a.py", "def f():\n    global x\n    x = 1", 2, "global x"),
        (no_pickle, "core/a.py", "from pickle import loads", 1, "runs code when it is read"),
        (no_pickle, "core/a.py", "np.load('x', allow_pickle=True)", 1, "allow_pickle"),
        (no_eval, "core/a.py", "def f(x):\n    return eval(x)", 2, "eval: user text becomes"),
        (no_eval, "core/a.py", "list(map(exec, texts))", 1, "exec"),
        (no_eval, "core/a.py", "frame().eval('x + 1')", 1, ".eval"),
        (dataclasses_are_frozen, "core/a.py", "@dataclass\nclass A: ...", 1, "A: write @dataclass(frozen"),
        (dataclasses_are_frozen, "core/a.py", "@dataclasses.dataclass(frozen=True)\nclass A: ...", 1, "slots=True"),
        (modules_are_short, "core/a.py", "\n" * 401, 401, "401 lines"),
        (rooms_say_what_they_are, "core/__init__.py", "", 1, "write a docstring"),
        (rooms_do_not_shadow_public_names, "simulate.py", "", None, "sateen.simulate is public"),
    ],
)
def test_a_planted_violation_is_seen(rule, file, text, line, words, tmp_path):
    planted = tmp_path / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(text)
    (complaint,) = rule(House(tmp_path))
    place = f"src/sateen/{file}:{line}: " if line else f"src/sateen/{file.removesuffix('.py')}: "
    assert complaint.startswith(place)
    assert words in complaint


def test_a_planted_cycle_is_seen_even_if_an_import_is_deferred(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text("from sateen.core import b")
    (tmp_path / "core" / "b.py").write_text("def f():\n    from sateen.core.c import g")
    (tmp_path / "core" / "c.py").write_text("if TYPE_CHECKING:\n    from sateen.core import b\nimport sateen.core.a")
    (complaint,) = no_import_cycles(House(tmp_path))
    assert complaint.startswith("src/sateen/core/a.py:1: imports itself through sateen.core.b, sateen.core.c")
    (tmp_path / "core" / "c.py").write_text("if TYPE_CHECKING:\n    from sateen.core import b")
    assert list(no_import_cycles(House(tmp_path))) == []


def test_too_many_modules_with_one_importer_are_seen(tmp_path):
    (tmp_path / "core").mkdir()
    for n in range(20):
        (tmp_path / "core" / f"m{n}.py").write_text(f"import sateen.core.m{n + 1}" if n < 2 else "")
    (complaint,) = few_modules_have_one_importer(House(tmp_path))
    assert "2 modules have a single importer" in complaint
    (tmp_path / "core" / "table.py").write_text('TABLE = {"a": "sateen.core.m1:f"}')
    assert list(few_modules_have_one_importer(House(tmp_path))) == []


def test_what_is_allowed_gives_no_complaint(tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text('"""A room."""')
    (tmp_path / "engine" / "a.py").write_text(
        "import re\nimport llvmlite\nimport numpy as np\nfrom sateen.core.errors import nearest\nfrom . import b\n"
        "NAME = re.compile('print(eval(x))')\n"
        "@dataclass(frozen=True, slots=True)\nclass A:\n    rng: np.random.Generator\n"
        "Seed = int | np.random.SeedSequence\n"
        "def f(seed):\n    return np.random.default_rng(np.random.SeedSequence(seed))\n"
    )
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__init__.py").write_text('"""The command line."""\nfrom sateen.study import a\nprint(1)\n')
    rules = [
        walls,
        no_import_cycles,
        libraries_at_home,
        imports_are_visible,
        printing_only_in_cli,
        no_hidden_randomness,
        no_global_state,
    ]
    rules += [no_pickle, no_eval, dataclasses_are_frozen, modules_are_short, rooms_say_what_they_are]
    assert [complaint for rule in rules for complaint in rule(House(tmp_path))] == []


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `statement`."""
    program = f"import sys\ntry:\n    {statement}\nexcept SystemExit:\n    pass\nprint()\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_import_sateen_loads_nothing_heavy():
    assert loaded_by("import sateen") & (HEAVY | {"numpy", "click"}) == set()


def test_help_loads_nothing_heavy():
    loaded = loaded_by("sys.argv = ['sateen', '--help']; from sateen.cli import main; main()")
    assert "sateen" in loaded
    assert loaded & HEAVY == set()


def test_every_public_name_is_there_and_listed():
    for name in sateen.__all__:
        assert getattr(sateen, name) is not None
    assert sorted(sateen.__all__) == dir(sateen)


def test_type_checkers_see_the_public_names():
    (root,) = [source for source in HOUSE.sources if source.file == "__init__.py"]
    seen = {name for _, module, name in root.imports if module.startswith("sateen.")}
    assert seen - {"nearest", "provide"} == set(sateen.__all__)


def test_every_error_is_public():
    assert set(errors.__all__) - {"nearest"} <= set(sateen.__all__)


def test_every_public_method_says_what_it_is_itself_or_through_the_class_it_extends():
    silent = []
    for owner in (thing for name in sateen.__all__ if isinstance(thing := getattr(sateen, name), type)):
        members = {name: getattr(owner, name) for name in vars(owner) if not name.startswith("_")}
        silent += [
            f"{owner.__module__}.{owner.__name__}.{name}: write a docstring"
            for name, member in members.items()
            if (callable(member) or isinstance(member, property)) and not inspect.getdoc(member)
        ]
    assert not silent, "\n".join(["", *silent])


def test_an_unknown_public_name_is_refused_with_the_nearest_one():
    with pytest.raises(AttributeError, match=r"^sateen has no Modle; did you mean Model\?$"):
        _ = sateen.Modle
    assert not hasattr(sateen, "quite_unlike_anything")


def test_the_version_is_one():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert sateen.__version__ == version, "src/sateen/__init__.py: __version__ differs from pyproject.toml"
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.M), "CITATION.cff: version differs"
    section = rf"^## (Unreleased|\[?{re.escape(version)}\b)"
    assert re.search(section, changes, re.M), f"CHANGELOG.md: needs a section Unreleased or {version}"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed, and .ci/run is a bash script")
@pytest.mark.parametrize(("name", "tool"), [("main", ".venv/bin/sateen "), ("test", ".venv/bin/pytest")])
def test_ci_runs_the_command_that_the_first_screen_of_the_readme_gives(name, tool):
    run = subprocess.run(["bash", ROOT / ".ci" / "run", "--show", name], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    command = run.stdout.rstrip("\n")
    screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN]
    block = [f"<!-- command: {name} -->", "```sh", command, "```"]
    assert "\n".join(block) in "\n".join(screen), f"README.md: show within {FIRST_SCREEN} lines: {command}"
    assert tool in command, f"README.md: the command {name} does not run {tool.strip()}"


def test_ci_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK), ".ci/run: chmod +x"


def test_no_lock_file_names_hosts():
    patterns = ("*.lock", "*-lock.json", "pylock*.toml", "*-lock.yaml", "*.lock.*")
    assert [file.name for pattern in patterns for file in ROOT.glob(pattern)] == [], "remove the lock file"


def test_every_example_is_run_by_a_test():
    tests = [file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    for example in (ROOT / "examples").rglob("*"):
        left_by_a_run = any(part == "__pycache__" or part.endswith("-result") for part in example.parts)
        if example.is_file() and not left_by_a_run:
            where = example.relative_to(ROOT)
            assert any(example.name in text for text in tests), f"{where}: no test names it; write one that runs it"
