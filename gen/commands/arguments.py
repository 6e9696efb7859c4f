"""The command line of `python -m gen`: its commands, options and help."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from gen.commands import compare, confirm, records, reports, review, whatif
from gen.commands.call import Call, Outcome
from gen.days import iso_day
from gen.words import Status
from probes import __version__
from probes.errors import UsageError
from probes.evidence import Technique

Command = Callable[[Call], Outcome]

_EPILOG = """\
exit codes:
  0    done; a service that is down or a decision that is open is a state, not a failure
  1    `check` found an error, a damaged file among them (with --strict: anything at all), or `confirm` a
       record that no longer holds
  2    used wrongly, or a file is broken; the message says where and what was expected. A command that
       only shows still shows what it could read; one that writes writes nothing.
  130  stopped with Ctrl-C; no file is left half-written

The day comes from --today, else INFERENCE_ADR_TODAY, else SOURCE_DATE_EPOCH, else the UTC date.
The same files and the same day give the same bytes on any machine.
"""


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, takes no option for another, and guesses what a misspelt word was meant to be."""

    def __init__(self, **settings: Any) -> None:
        # `--to` for `--today` would mean something else on the day that another option begins like that.
        super().__init__(**{"allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        """Translate argparse's complaint.

        Raises:
            UsageError: always.
        """
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            choices = re.findall(r"[\w-]+", wrong[2])
            close = difflib.get_close_matches(wrong[1], choices, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            message = f"{message.partition(':')[0]}: {wrong[1]!r} is not one of {', '.join(choices)}{hint}"
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def parser() -> Parser:
    """Describe the whole command line."""
    top = Parser(
        prog="python -m gen",
        description="Turn inventory, evidence and knowledge into decision records and the pages of the site.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"inference-adr {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command")

    pages = _command(commands, "pages", reports.write_site, "write the generated pages as Markdown into a folder")
    pages.add_argument(
        "--out", required=True, metavar="DIR", help="the folder; files that were not generated are never replaced"
    )

    matrix = _command(commands, "matrix", reports.matrix, "show the seven techniques with state, decision and next step")
    matrix.add_argument("--scope", metavar="SCOPE", help="fleet, or local-FINGERPRINT (default: all)")
    matrix.add_argument("--json", action="store_true", help="whole assessments with facts, prices and cells")

    summary = _command(commands, "summary", reports.summary, "show the machine measured last and where the site begins")
    summary.add_argument("--site", metavar="DIR", help="the folder that holds the built site")

    check = _command(commands, "check", reports.findings, "find what is wrong or due in inventory, evidence and records")
    _findings(check)
    check.add_argument("--due", action="store_true", help="only what is past its review, stale, or moved without a draft")
    check.set_defaults(records=())

    judge = _command(commands, "compare", compare.compare_runs, "judge baseline against candidate over the whole contract")
    judge.add_argument("runs", nargs="+", metavar="RUN", help="a run with both sides, or baseline and candidate: ids or files")
    judge.add_argument(
        "--changes", action="append", default=[], metavar="NAME", help="a setting or condition that is under test; repeatable"
    )
    judge.add_argument("--json", action="store_true", help="every interval, gate, difference and reason")

    suppose = _command(commands, "whatif", whatif.what_if, "say what other settings of a service would change, cost and need")
    suppose.add_argument("service", metavar="SERVICE", help="a service of fleet.yml, or embedded")
    suppose.add_argument("changes", nargs="+", metavar="CONTROL=VALUE", help="a setting as it would be; repeatable")
    suppose.add_argument("--json", action="store_true", help="cells, prices, planner results and evidence, before and after")

    again = _command(commands, "confirm", confirm.confirm_records, "ask whether records still hold by what was measured since")
    again.add_argument("records", nargs="*", metavar="RECORD", help="names (default: every record in force that says how)")
    again.add_argument("--plan", action="store_true", help="print what `python -m probes` has to measure, and judge nothing")
    how = again.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="outcomes, or with --plan the commands as lists of words")
    how.add_argument("--github", action="store_true", help="workflow commands that annotate a pull request")

    reviewed = _command(
        commands, "review", review.review_change, "sum up for a reviewer what changes against a base, as Markdown"
    )
    reviewed.add_argument(
        "--base", required=True, metavar="BASE", help="a commit, branch or tag, or a folder with another checkout"
    )

    schema = _command(commands, "schema", reports.schema, "show the JSON Schema of what people write or the site publishes")
    schema.add_argument("name", nargs="?", choices=tuple(reports.SCHEMAS), metavar="KIND", help=f"{', '.join(reports.SCHEMAS)}")
    schema.add_argument("--out", metavar="DIR", help="write all of them into this folder instead")

    _records(commands)
    return top


def _records(commands: argparse._SubParsersAction[Parser]) -> None:
    group = commands.add_parser("records", help="list, draft, accept and carry decision records")
    verbs = group.add_subparsers(required=True, metavar="VERB", dest="verb")

    listing = _command(verbs, "list", records.list_records, "list records, oldest first")
    listing.add_argument("--status", choices=[status.value for status in Status], metavar="STATUS")
    listing.add_argument("--technique", choices=[technique.value for technique in Technique], metavar="TECHNIQUE")
    listing.add_argument("--scope", metavar="SCOPE")
    listing.add_argument("--json", action="store_true", help="everything, with bodies and assessments")

    show = _command(verbs, "show", records.show, "show one record without its generated block")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="everything, parsed")

    propose = _command(verbs, "propose", records.draft, "draft a record for each assessment that moved since the last one")
    propose.add_argument("--scope", metavar="SCOPE", help="fleet, local (every machine measured here) or local-FINGERPRINT")
    propose.add_argument("--write", action="store_true", help="write the drafts instead of listing them")

    text = "show the exact change that a decision asks of each runtime, and the way back"
    config = _command(verbs, "config", records.configure, text)
    config.add_argument("name", metavar="NAME")
    config.add_argument("--json", action="store_true", help="services, values before and after, and each fragment")

    new = _command(verbs, "new", records.new, "start a record about the project itself")
    new.add_argument("title", metavar="TITLE")

    due = _command(verbs, "due", reports.findings, "show what is past its review, stale, or has moved without a draft")
    _findings(due)
    due.set_defaults(due=True, records=())

    sound = _command(verbs, "check", reports.findings, "find what is wrong with records: some of them, or all of the checkout")
    sound.add_argument("records", nargs="*", metavar="NAME")
    _findings(sound)
    sound.set_defaults(due=False)

    export = _command(
        verbs, "export", records.export, "write every record as JSON: fields, body, assessment, and where it lies"
    )
    export.add_argument("--out", metavar="FILE.json", help="write it there instead of showing it")

    for verb, command, text in (
        ("accept", records.accept_record, "put a record in force, in place of the one that is"),
        ("reject", records.reject, "close a proposal; it is not drafted again while nothing else changes"),
        ("deprecate", records.deprecate, "take a record out of force without another in its place"),
    ):
        move = _command(verbs, verb, command, text)
        move.add_argument("name", metavar="NAME")
        _decided(move, reason_required=verb != "accept")

    supersede = _command(verbs, "supersede", records.supersede_record, "link a record to the accepted one that replaces it")
    supersede.add_argument("old", metavar="OLD")
    supersede.add_argument("new", metavar="NEW")
    _decided(supersede, reason_required=False)

    text = "copy into adr/ a local run with the drafts it completes, or a draft with the runs it cites"
    promote = _command(verbs, "promote", records.promote_run, text)
    promote.add_argument("name", metavar="NAME", help="a run or a draft in adr/local: its name, its file's name or its path")

    take = _command(verbs, "import", records.import_files, "take evidence files made on another host into adr/local/")
    take.add_argument("files", nargs="+", metavar="FILE")


def _findings(command: Parser) -> None:
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a list of rule, severity, place, message and fix")
    form.add_argument("--github", action="store_true", help="workflow commands that annotate a pull request")
    form.add_argument("--markdown", action="store_true", help="a table for a job summary")
    command.add_argument("--strict", action="store_true", help="exit 1 for warnings too")


def _command(commands: argparse._SubParsersAction[Parser], name: str, run: Command, text: str) -> Parser:
    command: Parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.add_argument("--root", type=Path, metavar="DIR", help="the repository (default: the nearest folder with fleet.yml)")
    command.add_argument("--today", metavar="YYYY-MM-DD", help="the day to judge by")
    command.set_defaults(run_command=run)
    return command


def _decided(command: Parser, *, reason_required: bool) -> None:
    command.add_argument("--by", required=True, metavar="WHO", help="who decided")
    command.add_argument("--on", type=_day, metavar="YYYY-MM-DD", help="when (default: today)")
    command.add_argument("--why", required=reason_required, metavar="TEXT", help="the reason, in one line")


def _day(value: str) -> date:
    try:
        return iso_day(value)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"is {value!r}; {exc}") from exc
