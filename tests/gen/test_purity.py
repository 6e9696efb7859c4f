"""Deciding and rendering touch no world: no engine, no client, no clock, no environment; arrows go one way."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "gen" / "hook.py"
COMMAND_LINE = ROOT / "gen" / "__main__.py"
FOREIGN = {"httpx", "openvino", "openvino_genai", "mkdocs", "mkdocs_gen_files", "starlette", "uvicorn", "psutil", "pynvml"}
SCHEMAS = ("archive", "evidence", "fleet", "errors", "schema", "strictyaml", "strictjson", "quickyaml", "files", "ending")
SEAM = {f"probes.{name}" for name in SCHEMAS}
CLOCK = {"now", "utcnow", "today", "fromtimestamp", "time", "time_ns", "monotonic", "perf_counter"}
REST = {"getenv", "urlopen", "socket", "Popen", "system", "gethostname", "random", "uuid4"}


def modules(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.py"))


def test_importing_all_of_gen_loads_no_engine_and_no_client() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in modules(ROOT / "gen")
        if path != HOOK
    ]
    script = (
        "import importlib, json, sys; [importlib.import_module(n) for n in sys.argv[1:]]; print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, *names], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    loaded = set(json.loads(done.stdout))
    assert set(names) <= loaded
    assert not FOREIGN & {name.split(".")[0] for name in loaded}
    assert {name for name in loaded if name.startswith("probes.")} <= SEAM


def test_probes_never_import_gen() -> None:
    for path in modules(ROOT / "probes"):
        assert "gen" not in packages(path), path


def test_only_the_hook_imports_the_site_builder() -> None:
    builders = {"mkdocs", "mkdocs_gen_files"}
    assert [path for path in modules(ROOT / "gen") if builders & packages(path)] == [HOOK]


@pytest.mark.parametrize("library", ["pandas", "tabulate"])
def test_tables_live_in_one_place(library: str) -> None:
    users = {path.relative_to(ROOT).as_posix() for path in modules(ROOT / "gen") if library in packages(path)}
    assert users <= {"gen/tables.py"}


def test_gen_asks_neither_clock_nor_environment() -> None:
    """The command line and the hook read them once and hand them on; `days` turns what it is given into a date."""
    for path in modules(ROOT / "gen"):
        if path not in {HOOK, COMMAND_LINE}:
            called = {
                n.func.attr for n in ast.walk(tree(path)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
            }
            read = {n.attr for n in ast.walk(tree(path)) if isinstance(n, ast.Attribute)} & {"environ"}
            allowed = {"fromtimestamp"} if path.name == "days.py" else set()
            assert (called & (CLOCK | REST) | read) <= allowed, path


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def packages(path: Path) -> set[str]:
    """Name every package that a file imports from, anywhere in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found
