"""Both programs end with one message and one exit code, whatever their streams and their surroundings are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.ending import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, carry_out
from probes.errors import HostError, InputError, Problem

ROOT = Path(__file__).parents[2]
PROGRAMS = {"probes": "-m probes plan", "gen": "-m gen matrix"}


def shell(script: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "INFERENCE_ADR_CACHE": str(ROOT)}
    return subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", script], cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("streams", "said"),
    [
        (">&-", "standard output: is closed; expected a terminal, a pipe or a file, such as >/dev/null"),
        ("<&- >&-", "standard output: is closed; expected a terminal, a pipe or a file, such as >/dev/null"),
        (">/dev/full", "standard output: cannot be written (No space left on device)"),
    ],
)
def test_an_output_that_takes_nothing_is_one_message(name: str, streams: str, said: str) -> None:
    done = shell(f"$PYTHON {PROGRAMS[name]} {streams}")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{name}: {said}")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("words", "streams", "code"),
    [("", "2>&-", 0), ("--nonsense", "2>&-", 2), ("--nonsense", "2>/dev/full", 2), ("", ">&- 2>&-", 2)],
)
def test_messages_that_nobody_takes_leave_the_exit_code(name: str, words: str, streams: str, code: int) -> None:
    assert shell(f"$PYTHON {PROGRAMS[name]} {words} {streams}").returncode == code


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_current_folder_that_is_gone_is_one_message(name: str, tmp_path: Path) -> None:
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; exec $PYTHON {PROGRAMS[name]}", cwd=tmp_path)
    said = "the current folder: cannot be used (No such file or directory); expected one that exists"
    assert (done.returncode, done.stderr) == (2, f"{name}: {said}\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c_while_it_starts_is_one_line(name: str) -> None:
    """At several moments: Python's own start is over with the first module of the project."""
    for module in ("probes.ending", "probes.errors", "pydantic.main"):
        script = (
            "import os, runpy, signal, sys\n"
            "class Watch:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {module!r}:\n"
            "            sys.meta_path.remove(watch)\n"
            "            os.kill(os.getpid(), signal.SIGINT)\n"
            "watch = Watch()\n"
            "sys.meta_path.insert(0, watch)\n"
            f"sys.argv = {PROGRAMS[name].split()[1:]!r}\n"
            f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
        assert (done.returncode, done.stdout) == (130, ""), done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"{name}: stopped")


def test_a_process_that_hears_ctrl_c_ends_with_130_and_not_by_the_signal() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "probes", "plan"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while "pydantic" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "probes: stopped before anything was measured\n")


def test_each_failure_has_its_words_and_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def raising(exc: BaseException) -> tuple[int, str]:
        def command() -> int:
            raise exc

        code = carry_out("x", command, stopped="stopped")
        return code, capsys.readouterr().err

    problems = [Problem(place=place, found="is bad", expected="good") for place in ("b", "a")]
    assert raising(InputError(problems)) == (EXIT_UNUSABLE, "x: a: is bad; expected good\nx: b: is bad; expected good\n")
    assert raising(HostError("no")) == (EXIT_UNUSABLE, "x: no\n")
    assert raising(KeyboardInterrupt()) == (EXIT_INTERRUPTED, "x: stopped\n")
    assert raising(PermissionError(13, "Permission denied", "/f")) == (EXIT_UNUSABLE, "x: /f: Permission denied\n")
    assert raising(OSError(28, "No space left on device")) == (
        EXIT_UNUSABLE,
        "x: the system refused: No space left on device\n",
    )
    assert carry_out("x", lambda: 7, stopped="") == 7
    assert raising(BrokenPipeError()) == (EXIT_OK, "")
