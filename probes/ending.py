"""How a command ends: one message and one exit code, whatever goes wrong and whatever its streams are."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn, TextIO

from probes.errors import AdrError, HostError

EXIT_OK: Final = 0
EXIT_UNUSABLE: Final = 2
EXIT_INTERRUPTED: Final = 130


def carry_out(name: str, command: Callable[[], int], *, stopped: str) -> int:
    """Run a command and give its exit code; every foreseeable failure is a message of `name` on standard error.

    `stopped` is what Ctrl-C says. A reader that has seen enough and closes the pipe is no failure.
    """
    try:
        _open_streams()
        code = command()
        sys.stdout.flush()
    except AdrError as exc:
        _tell(name, str(exc))
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        _tell(name, stopped)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard(sys.stdout)
        return EXIT_OK
    except OSError as exc:
        _tell(name, _blame(exc))
        return EXIT_UNUSABLE
    return code


def leave(code: int) -> NoReturn:
    """End the process with an exit code.

    If Ctrl-C fell into source text that `exec` ran, as dataclasses and named tuples do, Python ends by the
    signal although it was handled (`exit_sigint` in CPython's Modules/main.c); a program would read -2.
    """
    if code == EXIT_INTERRUPTED:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _open_streams() -> None:
    """Open what the starter left closed, or the next file that is opened becomes a standard stream.

    Raises:
        HostError: standard output is closed, and with it the way to tell a result.
    """
    closed = sys.stdout is None
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if closed:
        raise HostError("standard output: is closed; expected a terminal, a pipe or a file, such as >/dev/null")


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (pathlib is slow to import)


def _tell(name: str, words: str) -> None:
    """Write to standard error, if that can still be done: the exit code says the rest."""
    try:
        print(f"{name}: {words}".replace("\n", f"\n{name}: "), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _blame(error: OSError) -> str:
    """Name the file of an error; one without a name is that of standard output if not even a line break can be written."""
    if error.filename:
        return f"{error.filename}: {error.strerror}"
    try:
        print(flush=True)
    except OSError as exc:
        _discard(sys.stdout)
        return f"standard output: cannot be written ({exc.strerror}); expected a terminal, a pipe or a file with space"
    return f"the system refused: {error.strerror or error}"


def _discard(stream: TextIO) -> None:
    """Send what a stream still holds nowhere, or Python complains about it once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
