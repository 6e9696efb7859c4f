"""The commands of the probes: plan, run, serve the embedded service, ask one address, put load on it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from probes import __version__
from probes.context import Context
from probes.contract.arguments import add_arguments as add_contract_arguments
from probes.ending import EXIT_INTERRUPTED, EXIT_OK
from probes.errors import UsageError
from probes.evidence import Missing, MissingReason, Run, Tool
from probes.exchange import importing
from probes.files import current_folder
from probes.fleet import INVENTORY, Fleet, ProbeLimits, load_fleet, reference_name
from probes.host import read_host
from probes.load.arguments import add_arguments
from probes.lock import alone
from probes.model import default_cache, prepare_model
from probes.plan import Part, Plan, plan
from probes.quality.arguments import add_arguments as add_quality_arguments
from probes.redaction import Redactor, machine_paths, vocabulary, weakness

_PLAIN_WIDTH: Final = 120


def run(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and give its exit code.

    Raises:
        AdrError: the command line is wrong, a file is broken, or this machine lacks something.
    """
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _terminated)
    return int(arguments.command(arguments))


def _terminated(_signal: int, _frame: types.FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing every option there is over the one line that says what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Translate argparse's complaint.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message}; `{self.prog} --help` says what there is")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m probes",
        allow_abbrev=False,
        description="Measure what this machine and the services of fleet.yml really do, and write it down as evidence.",
        epilog="Exit codes: 0 done (a service that is down is a result, not a failure), 2 used wrongly or input broken, "
        "130 stopped with Ctrl-C; what was measured until then is kept.",
    )
    parser.add_argument("--version", action="version", version=f"inference-adr {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str, **more: Any) -> argparse.ArgumentParser:
        described = {"description": f"{text[0].upper()}{text[1:]}" + ("" if text.endswith("?") else ".")}
        return commands.add_parser(name, help=text, allow_abbrev=False, **described | more)

    for name, text in (("run", "measure and write evidence"), ("plan", "print what `run` would do, and stop")):
        command = add(name, text)
        command.add_argument(
            "parts", nargs="*", metavar="PART", help=f"what to probe: {', '.join(Part)} (default: all but workloads)"
        )
        command.add_argument("--service", action="append", default=[], metavar="NAME", help="ask only this service")
        command.add_argument(
            "--quick", action="store_true", help="fewer capabilities and benchmarks, shorter prompts or answers"
        )
        command.add_argument("--fleet", type=Path, default=INVENTORY, metavar="FILE", help="the inventory")
        command.add_argument("--out", type=Path, default=Path("adr/local/evidence"), metavar="DIR", help="where evidence goes")
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        if name == "run":
            command.add_argument("--dry-run", action="store_true", help="print the plan and stop")
        command.set_defaults(command=_run, dry_run=name == "plan")

    serve = add("serve", "serve the embedded model with the paths of OVMS on 127.0.0.1")
    serve.add_argument("--port", type=int, default=8001)
    serve.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="change a setting of fleet.yml")
    serve.add_argument("--fleet", type=Path, default=INVENTORY, metavar="FILE")
    serve.set_defaults(command=_serve)

    endpoint = add("endpoint", "ask one address what it is and what it has switched on")
    endpoint.add_argument("--url", required=True)
    endpoint.add_argument("--key-env", metavar="NAME", help="environment variable that holds the key")
    endpoint.add_argument("--ca-file", metavar="FILE", help="certificate authority to trust for this address")
    endpoint.add_argument("--insecure", action="store_true", help="do not verify TLS; the result says so")
    endpoint.add_argument("--max-tokens", type=int, default=16, help="0 asks for no text at all (default: 16)")
    endpoint.add_argument("--model", metavar="ID", help="the model to ask (default: the first that is loaded)")
    endpoint.add_argument(
        "--may-load",
        action="store_true",
        help="ask for text even where that makes the server load the model, and unload another: Ollama, LM Studio, llama.cpp's "
        "router, an idle graph of OVMS",
    )
    endpoint.add_argument("--json", action="store_true", help="print the whole run as JSON")
    endpoint.set_defaults(command=_endpoint)

    speculation = add("speculation", "can EAGLE-3 or a draft model pay for this model on this device?")
    _add_speculation_arguments(speculation)
    speculation.set_defaults(command=_speculation)

    load = add(
        "load",
        "put load on one address and measure it",
        description="Put load on one address and measure it. Streams are read to their end; an address that is neither this "
        "machine nor in the inventory gets 2 small requests unless --allow-load stands there.",
        epilog="Exit codes: 0 valid run, 1 run that may not be used (the file says why), 2 nothing could be asked, 130 Ctrl-C.",
    )
    add_arguments(load)
    load.set_defaults(command=_load)

    contract = add(
        "contract",
        "measure the whole contract of one side, or of baseline and candidate by turns",
        description="Measure the eight quantities of the measurement contract, a sample per repetition, and write one evidence "
        "file. Two sides are measured by turns: A B, B A, ... `python -m gen compare RUN` judges them.",
        epilog="Exit codes: 0 done (a side that is down is a state), 2 used wrongly, or a run that may not be used (the file "
        "says why), 130 Ctrl-C; finished repetitions are kept.",
    )
    add_contract_arguments(contract)
    contract.set_defaults(command=_contract)

    quality = add(
        "quality",
        "ask one address small tasks and score its answers",
        description="Ask one address small tasks, greedily, and score its answers by rules that code can check.",
        epilog="Exit codes: 0 usable run, 1 something failed (the file says what), 2 nothing could be asked, 130 Ctrl-C.",
    )
    add_quality_arguments(quality)
    quality.set_defaults(command=_quality)

    exchange = add(
        "import",
        "read result files of guidellm, aiperf or vllm bench serve as evidence",
        description="Read result files of guidellm, aiperf or vllm bench serve as evidence. Their definitions are taken for "
        "ours where they are the same; what is not the same is missing, with the reason.",
    )
    importing.add_arguments(exchange)
    exchange.set_defaults(command=_import)
    return parser


def _add_speculation_arguments(speculation: argparse.ArgumentParser) -> None:
    speculation.add_argument("--ir", type=Path, required=True, metavar="DIR", help="folder of the target's OpenVINO model")
    speculation.add_argument("--device", default="CPU", help="OpenVINO device, such as GPU.0 (default: CPU)")
    drafter = speculation.add_mutually_exclusive_group()
    drafter.add_argument("--head", type=Path, metavar="DIR", help="an EAGLE-3 head to try (default: one with random weights)")
    drafter.add_argument("--draft", type=Path, metavar="DIR", help="a model of the same tokenizer to draft with instead")
    speculation.add_argument(
        "--budget", type=float, default=120.0, metavar="S", help="seconds of each measurement (default: 120)"
    )
    speculation.add_argument("--quick", action="store_true", help="one length of drafts only")
    speculation.add_argument("--json", action="store_true", help="print the whole runs as JSON")


def _run(arguments: argparse.Namespace) -> int:
    from probes.endpoints.probe import find_doors
    from probes.session import run_plan
    from probes.workloads.package import installed

    fleet = _fleet(arguments.fleet)
    parts = _parts(arguments.parts)
    laid_out = plan(fleet, os.environ, parts=parts, services=arguments.service, quick=arguments.quick, installed=installed())
    # What is written wrongly is told now, not when its turn comes.
    find_doors(current_folder(), fleet, os.environ, laid_out.services)
    console = _console(stderr=arguments.json)
    if not arguments.json or not arguments.dry_run:
        _print_plan(console, laid_out)
    if arguments.dry_run:
        if arguments.json:
            print(json.dumps([vars(step) for step in laid_out.steps], indent=1))
        return EXIT_OK
    context = _context(arguments.out, fleet, quick=arguments.quick, console=console)
    holder = f"process {os.getpid()} since {context.clock():%Y-%m-%d %H:%M:%S} UTC ({context.tool.command})"
    with alone(context.cache, holder, context.say):
        result = run_plan(laid_out, fleet, context, os.environ, inventory=arguments.fleet.parent)
    if arguments.json:
        print(json.dumps({"evidence": [str(path) for path in result.written], "interrupted": result.interrupted}, indent=1))
    files = "1 evidence file" if len(result.written) == 1 else f"{len(result.written)} evidence files"
    console.print(f"{files} in {_shown(arguments.out)}", highlight=False)
    if result.interrupted:
        kept = "What was finished until then is kept." if result.written else "No evidence file was finished."
        console.print(f"Stopped. {kept}", highlight=False)
        return EXIT_INTERRUPTED
    return EXIT_OK


def _serve(arguments: argparse.Namespace) -> int:
    from probes.endpoints.embedded.server import parse_settings, read_settings, serve

    settings = {**_fleet(arguments.fleet).embedded.settings, **parse_settings(arguments.setting)}
    read_settings(settings)
    model = prepare_model(default_cache(os.environ))
    serve(model, settings, port=arguments.port)
    return EXIT_OK


def _endpoint(arguments: argparse.Namespace) -> int:
    from probes.endpoints.address import key_from, parse_address
    from probes.endpoints.probe import Target, probe_endpoint
    from probes.endpoints.report import lines

    address = parse_address(arguments.url, "--url")
    key = key_from(os.environ, arguments.key_env) if arguments.key_env else None
    if arguments.max_tokens < 0:
        raise UsageError(f"--max-tokens {arguments.max_tokens}: is negative; expected 0 or more")
    limits = ProbeLimits(
        requests=2 if arguments.max_tokens else 0, max_tokens=max(arguments.max_tokens, 1), may_load=arguments.may_load
    )
    context = _context(Path(), None, quick=False, console=_console(stderr=True), secrets=[key] if key else [])
    target = Target(
        subject=urlsplit(address.root).netloc,
        url=arguments.url,
        scope=context.local,
        key=key,
        ca_file=arguments.ca_file,
        insecure=arguments.insecure,
        limits=limits,
        shown_url=arguments.url,
        expected=None,
        model=arguments.model,
        load_place="--may-load",
        place="--url",
        key_place=f"environment variable {arguments.key_env}",
    )
    run = probe_endpoint(context, target)
    print(run.model_dump_json(indent=1) if arguments.json else "\n".join(lines(run)))
    return EXIT_OK


def _speculation(arguments: argparse.Namespace) -> int:
    from probes.drafts.command import Drafter, ask
    from probes.drafts.verdict import lines

    if not arguments.budget > 0:
        raise UsageError(f"--budget {arguments.budget:g}: is no time; expected seconds above 0")
    context = _context(Path(), None, quick=arguments.quick, console=_console(stderr=True))
    drafter = Drafter(head=arguments.head, draft=arguments.draft)
    proven, measured = ask(context, arguments.ir, arguments.device, drafter, budget_s=arguments.budget)
    if arguments.json:
        print(json.dumps([json.loads(run.model_dump_json()) for run in (proven, *measured)], indent=1))
    else:
        print("\n".join(lines(proven, measured)))
    return EXIT_OK


def _load(arguments: argparse.Namespace) -> int:
    from probes.load.command import load

    return load(arguments, os.environ, _contexts(_console(stderr=True)), _tell)


def _contract(arguments: argparse.Namespace) -> int:
    from probes.contract.command import contract

    console = _console(stderr=True)

    def show(run: Run, path: Path) -> None:
        for reason in run.validity.reasons:
            console.print(f"INVALID: {reason}", highlight=False, markup=False)
        print(run.model_dump_json(indent=1) if arguments.json else path)

    return contract(arguments, os.environ, _contexts(console, arguments.out), show)


def _quality(arguments: argparse.Namespace) -> int:
    from probes.quality.command import quality

    return quality(arguments, os.environ, _contexts(_console(stderr=True)), _tell)


def _import(arguments: argparse.Namespace) -> int:
    return importing.import_files(arguments, _contexts(_console(stderr=True), arguments.out), _tell)


def _fleet(path: Path) -> Fleet:
    if path == INVENTORY and not path.exists():
        raise UsageError(
            f"{path}: is not in {current_folder()}; expected the repository's root as the current folder, or --fleet FILE"
        )
    return load_fleet(path)


def _parts(words: Sequence[str]) -> list[Part]:
    try:
        return [Part(word) for word in words]
    except ValueError as exc:
        wrong = next(word for word in words if word not in set(Part))
        raise UsageError(f"{wrong}: is not a part; expected {', '.join(Part)}") from exc


def _contexts(console: Console, out: Path = Path()) -> Callable[[Fleet | None, Sequence[str]], Context]:
    """Let a command make its context once it knows inventory and keys."""
    return lambda fleet, secrets: _context(out, fleet, quick=False, console=console, secrets=secrets)


def _tell(line: str) -> None:
    print(line, flush=True)


def _context(out: Path, fleet: Fleet | None, *, quick: bool, console: Console, secrets: Sequence[str] = ()) -> Context:
    root = current_folder()
    services = fleet.services.values() if fleet else ()
    names = [reference_name(service.api_key) for service in services if service.api_key]
    keys = {name: os.environ.get(name, "").strip() for name in names if name}
    if secrets and secrets[0] not in keys.values():
        keys["--key-env"] = secrets[0]
    addresses = [reference_name(service.url) for service in services if service.url]
    known = [os.environ.get(name, "") for name in addresses if name]
    common = vocabulary(Run.model_json_schema())
    cache = default_cache(os.environ)
    paths = machine_paths(home=_home(), repository=root, environment=Path(sys.prefix), cache=cache)
    redact = Redactor(secrets=[*known, *keys.values(), *secrets], paths=paths, common=common)
    command = shlex.join(["python", "-m", "probes", *sys.argv[1:]])
    context = Context(
        root=root,
        evidence=out,
        cache=cache,
        client=read_host(),
        tool=Tool(version=__version__, git_revision=_git_revision(root), command=redact.text(command)),
        redact=redact,
        clock=lambda: datetime.now(UTC),
        say=lambda line: console.print(redact.text(line), highlight=False, markup=False),
        quick=quick,
    )
    for name, key in keys.items():
        if key and (why := weakness(key, common)):
            context.say(f"{name}: the key {why}, so evidence may repeat it where a server does; expected a longer, random one")
    return context


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # neither HOME nor an entry of the user: some containers
        return None


def _git_revision(root: Path) -> str | Missing:
    """Name the commit, with '+changes' when tracked files differ from it."""
    try:
        run = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+changes"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return Missing(missing=MissingReason.NOT_APPLICABLE, detail="not a git checkout")
    return run.stdout.strip()


class _Console(Console):
    """Leaves a closed pipe to whoever ends the command; rich would end it with exit code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return _Console(stderr=stderr, width=None if stream.isatty() else _PLAIN_WIDTH)


def _print_plan(console: Console, laid_out: Plan) -> None:
    console.print(f"Plan: about {laid_out.about_s / 60:.1f} min on two cores", highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "what", "where", "load"):
        table.add_column(heading, overflow="fold")
    for step in laid_out.steps:
        table.add_row(*map(escape, (step.part.value, step.subject, step.target, step.load)))
    console.print(table)


def _shown(path: Path) -> str:
    return f"{path}/" if str(path) != "." else "./"
