"""Every way a child can end is a value, and no way leaves a process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import JsonValue

from probes.child import WORDS_LIMIT, ChildResult, Outcome, run_child

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
PLANTED = """
import ctypes, os, signal, subprocess, sys, time

def add(a, b):
    print("a runtime writes to stdout")
    return {"sum": a + b}

def stages(emit, then):
    emit({"stage": "loaded"})
    emit({"stage": "compiled", "pid": os.getpid()})
    return globals()[then]()

def fine():
    return "done"

def refuse():
    raise RuntimeError("Wrong value i8 for property key KV_CACHE_PRECISION")

def mistake():
    raise KeyError("eos_token_id")

def segfault():
    print("about to read address zero", file=sys.stderr, flush=True)
    ctypes.string_at(0)

def abort():
    print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
    os.abort()

def leave():
    sys.exit(3)

def vanish():
    os._exit(7)

def hang():
    time.sleep(600)

def hang_with_family():
    family = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("child of the child", family.pid, flush=True)
    time.sleep(600)

def hog():
    held = []
    while True:
        held.append(b"x" * 20_000_000)
        time.sleep(0.01)

def exhausted():
    raise MemoryError

def shout():
    sys.stdout.write("noise\\n" * 200_000)
    raise RuntimeError("after a megabyte of output")

def unfit():
    return {1, 2}

def nan():
    return float("nan")

def environment():
    return os.environ.get("OPENVINO_LOG_LEVEL")

def wordy():
    raise RuntimeError("cause" + "." * 100_000 + "last words")
"""


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., ChildResult]:
    (tmp_path / "planted.py").write_text(PLANTED)

    def run(name: str, arguments: dict[str, JsonValue] | None = None, **options: Any) -> ChildResult:
        bounds: dict[str, Any] = {"timeout_s": 30.0, "memory_bytes": 512 * MIB, **options}
        env = {"PYTHONPATH": str(tmp_path), **bounds.pop("env", {})}
        return run_child(f"planted:{name}", arguments or {}, env=env, **bounds)

    return run


def test_a_value_comes_back_beside_whatever_was_printed(child: Callable[..., ChildResult]) -> None:
    result = child("add", {"a": 1, "b": 2})
    assert (result.outcome, result.value, result.words, result.sent) == (Outcome.OK, {"sum": 3}, "", ())
    assert result.peak_rss_bytes > MIB
    assert result.seconds > 0


def test_the_environment_is_extended_not_replaced(child: Callable[..., ChildResult]) -> None:
    assert child("environment", env={"OPENVINO_LOG_LEVEL": "4"}).value == "4"


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("refuse", Outcome.RAISED, "Wrong value i8 for property key KV_CACHE_PRECISION"),
        ("mistake", Outcome.RAISED, "KeyError: 'eos_token_id'"),
        ("leave", Outcome.RAISED, "SystemExit: 3"),
        ("segfault", Outcome.CRASHED, "SIGSEGV; last output: about to read address zero"),
        ("vanish", Outcome.CRASHED, "exit status 7 without an answer"),
        (
            "abort",
            Outcome.OUT_OF_MEMORY,
            "SIGABRT; last output: terminate called after throwing an instance of 'std::bad_alloc'",
        ),
        ("exhausted", Outcome.OUT_OF_MEMORY, "MemoryError: no message"),
        ("unfit", Outcome.RAISED, "TypeError: Object of type set is not JSON serializable"),
        ("shout", Outcome.RAISED, "after a megabyte of output"),
        ("absent", Outcome.RAISED, "AttributeError: module 'planted' has no attribute 'absent'"),
    ],
)
def test_each_end_has_its_outcome_and_words(child: Callable[..., ChildResult], name: str, outcome: Outcome, words: str) -> None:
    result = child(name)
    assert (result.outcome, result.words) == (outcome, words)
    assert result.value is None


def test_a_number_that_json_lacks_is_not_an_answer(child: Callable[..., ChildResult]) -> None:
    result = child("nan")
    assert result.outcome is Outcome.RAISED
    assert result.words.startswith("ValueError: Out of range float values are not JSON compliant")


def test_a_module_that_cannot_be_imported_is_an_outcome() -> None:
    result = run_child("no.such.module:f", {}, timeout_s=30, memory_bytes=512 * MIB)
    assert (result.outcome, result.words) == (Outcome.RAISED, "ModuleNotFoundError: No module named 'no'")


def test_long_words_keep_cause_and_end(child: Callable[..., ChildResult]) -> None:
    words = child("wordy").words
    assert words.startswith("cause.")
    assert words.endswith("last words")
    assert len(words) < WORDS_LIMIT + 10


def test_a_hang_ends_at_the_bound_with_its_whole_group(child: Callable[..., ChildResult]) -> None:
    result = child("hang_with_family", timeout_s=2.0)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.words.startswith("no end after 2 s; last output: child of the child ")
    assert not _alive(int(result.words.split()[-1]))


def test_growing_past_the_bound_is_out_of_memory(child: Callable[..., ChildResult]) -> None:
    result = child("hog", memory_bytes=200 * MIB)
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert f"the bound is {200 * MIB}" in result.words
    assert result.peak_rss_bytes > 200 * MIB


@pytest.mark.parametrize("then", ["fine", "segfault", "refuse"])
def test_what_was_emitted_survives_any_end(child: Callable[..., ChildResult], then: str) -> None:
    heard: list[JsonValue] = []
    result = child("stages", {"then": then}, on_sent=heard.append)
    assert [entry["stage"] for entry in result.sent if isinstance(entry, dict)] == ["loaded", "compiled"]
    assert tuple(heard) == result.sent


def test_an_interrupt_passes_on_and_leaves_nothing_behind(child: Callable[..., ChildResult]) -> None:
    pids: list[int] = []

    def interrupt(value: JsonValue) -> None:
        if isinstance(value, dict) and "pid" in value:
            pids.append(int(str(value["pid"])))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        child("stages", {"then": "hang"}, on_sent=interrupt)
    assert len(pids) == 1
    assert not _alive(pids[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child together with its parent")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_child_dies_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    parent = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _script(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert _alive(pid)
    os.kill(parent.pid, how)
    parent.wait(timeout=20)
    parent.stdout.close()
    _until(lambda: not _alive(pid))


def _script(planted: Path) -> str:
    return textwrap.dedent(f"""
        from probes.child import run_child
        def tell(value):
            if "pid" in value: print(value["pid"], flush=True)
        run_child("planted:stages", {{"then": "hang"}}, timeout_s=120, memory_bytes=2**30,
                  env={{"PYTHONPATH": {str(planted)!r}}}, on_sent=tell)
    """)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("did not happen within 10 s")
