"""The command as a user runs it: what it writes, what it says, how it exits."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from probes.__main__ import main
from probes.archive import read_runs
from probes.evidence import MissingReason, RunKind
from probes.quality.result import Quality
from tests.probes.quality.scripted import completion, models
from tests.servers import Script, hear, http, talking

ROOT = Path(__file__).parents[3]
TASK = {"id": "a", "prompt": "Say yes.", "max_tokens": 8, "check": {"kind": "text", "answers": ["yes"]}}
OPEN = {"id": "o", "suite": "free", "prompt": "Say more.", "max_tokens": 8, "check": {"kind": "open"}}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without an inventory; the command works with one and without."""
    monkeypatch.chdir(tmp_path)
    corpus(TASK, OPEN)


def corpus(*tasks: object) -> None:
    Path("own.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")


def server(answer: bytes = completion(), listed: bytes = models("m"), heard: list[bytes] | None = None) -> Script:
    """List models and answer everything else alike."""

    def script(connection: socket.socket) -> None:
        request = hear(connection)
        if heard is not None:
            heard.append(request)
        connection.sendall(listed if request.startswith(b"GET ") else answer)

    return script


def quality(script: Script, *words: str, tasks: str | None = "own.jsonl") -> int:
    with talking(script) as port:
        own = ["--tasks", tasks] if tasks else []
        return main(["quality", "--url", f"http://127.0.0.1:{port}", *own, *words])


def result(path: str = "out.json") -> Quality:
    return Quality.model_validate_json(Path(path).read_bytes())


def test_file_and_evidence_hold_the_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert quality(server(), "--json", "out.json", "--out", "evidence", "--repetitions", "2") == 0
    found = result()
    assert [(suite.name, suite.shares) for suite in found.suites] == [("own", (1.0, 1.0)), ("free", ())]
    (run,), problems = read_runs(Path("evidence"))
    assert (problems, run.kind, run.validity.valid) == ((), RunKind.QUALITY, True)
    metric = run.metric("task_quality")
    assert metric is not None
    assert (metric.samples, metric.unit) == ((1.0, 1.0), "share")
    assert getattr(run.load, "prompt_set_sha256", "") == found.tasks_sha256
    told = capsys.readouterr().out
    assert "task_quality" in told
    assert "own              1.000  2 right" in told


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_full_disk_is_one_message_after_the_scores(capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").symlink_to("/dev/full")
    assert quality(server(), "--json", "full") == 2
    said = capsys.readouterr()
    assert "full: cannot be written (No space left on device)" in said.err
    assert "task_quality" in said.out


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "own.jsonl:2: is not JSON"),
        (json.dumps(TASK | {"id": "b", "max_tokens": 0}), "own.jsonl:2: max_tokens: is 0; expected"),
    ],
)
def test_bad_corpus_line_ends_the_command_before_any_request(
    line: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.jsonl").write_text(json.dumps(TASK) + "\n" + line + "\n", encoding="utf-8")
    heard: list[bytes] = []
    assert quality(server(heard=heard)) == 2
    assert heard == []
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--repetitions", "0"], "--repetitions 0: expected 1 to 100"),
        (["--concurrency", "0"], "--concurrency 0: expected 1 to 64"),
        (["--thinking-tokens", "-1"], "--thinking-tokens -1: expected 0 to"),
        (["--timeout-s", "nan"], "--timeout-s nan: expected 0.1 to 3600"),
        (["--suite", "exact"], "--suite exact: is not a suite; expected own, free"),
        (["--tasks", "gone.jsonl"], "gone.jsonl: cannot be read"),
        (["--json", "gone/out.json"], "--json gone/out.json: cannot be written"),
        (["--baseline", "gone.json"], "gone.json: cannot be read"),
        (["--baseline", "own.jsonl"], "own.jsonl: "),
        (["--key-env", "NO_SUCH_KEY"], "--key-env NO_SUCH_KEY: is unset or empty"),
        (["--fleet", "gone.yml"], "--fleet gone.yml: does not exist"),
        (["--ca-file", "gone.pem", "--url", "https://127.0.0.1:1"], "--ca-file gone.pem: does not exist"),
        (["--url", "ftp://h"], "--url: is not an http(s) address"),
    ],
)
def test_words_that_cannot_be_meant_are_told_before_any_request(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[bytes] = []
    assert quality(server(heard=heard), *words) == 2
    assert heard == []
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listed", "words", "complaint"),
    [
        (models("a", "b"), [], "lists several; expected one of a, b"),
        (models(), [], "lists no model (its list is empty)"),
        (http("404 Not Found", b"nothing here"), [], "lists no model (HTTP 404: nothing here)"),
        (models("a", "b"), ["--model", "c"], "--model c: is not listed at"),
    ],
)
def test_model_that_is_not_clear_is_asked_for_and_those_that_exist_are_named(
    listed: bytes, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[bytes] = []
    assert quality(server(listed=listed, heard=heard), *words) == 2
    assert all(one.startswith(b"GET ") for one in heard)
    assert complaint in capsys.readouterr().err


def test_model_of_a_server_without_a_list_is_taken_at_its_word() -> None:
    assert quality(server(listed=http("404 Not Found")), "--model", "m") == 0


def test_only_the_chosen_suites_are_asked() -> None:
    assert quality(server(), "--suite", "own", "--json", "out.json") == 0
    assert [suite.name for suite in result().suites] == ["own"]


def test_server_that_fails_leaves_a_file_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    answer = http("500 Broken", b'{"error": "CL_OUT_OF_RESOURCES"}')
    assert quality(server(answer), "--json", "out.json", "--out", "evidence") == 1
    assert "HTTP 500: CL_OUT_OF_RESOURCES" in capsys.readouterr().out
    assert result().suites[0].shares == ()
    (run,), _ = read_runs(Path("evidence"))
    assert run.validity.reasons == ("requests-failed", "nothing-answered")


def test_nothing_at_the_address_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    with talking(server()) as port:
        pass
    assert main(["quality", "--url", f"http://127.0.0.1:{port}", "--tasks", "own.jsonl"]) == 2
    assert "Connection refused" in capsys.readouterr().err


def test_baseline_is_compared_answer_by_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert quality(server(), "--json", "out.json") == 0
    assert quality(server(), "--baseline", "out.json") == 0
    assert "with the baseline: 1 of 1 answers identical" in capsys.readouterr().out
    assert quality(server(completion("yes, but")), "--baseline", "out.json") == 0
    told = capsys.readouterr().out
    assert "with the baseline: 0 of 1 answers identical; the others begin to differ after 1 words" in told
    assert "NOT COMPARABLE" not in told


def test_baseline_of_other_tasks_is_not_comparable(capsys: pytest.CaptureFixture[str]) -> None:
    assert quality(server(), "--json", "out.json") == 0
    corpus(TASK | {"prompt": "Say no."}, OPEN)
    assert quality(server(), "--baseline", "out.json", "--thinking-tokens", "5") == 0
    told = capsys.readouterr().out
    assert "NOT COMPARABLE: the scores of the two runs are of different tasks" in told
    assert "NOT COMPARABLE: the two runs granted different numbers of tokens" in told


def test_key_is_in_no_file_and_no_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("THE_KEY", "sesame-4711")
    answer = completion("your key is sesame-4711")
    assert quality(server(answer), "--key-env", "THE_KEY", "--json", "out.json", "--out", "evidence") == 0
    refused = http("401 Unauthorized", b'{"error": "sesame-4711 is not known"}')
    assert quality(server(refused), "--key-env", "THE_KEY", "--out", "evidence2") == 1
    told = capsys.readouterr()
    everything = told.out + told.err + "".join(path.read_text("utf-8") for path in Path().rglob("*.json"))
    assert "your key is [redacted]" in everything
    assert "sesame" not in everything


def test_service_of_the_inventory_gets_no_more_than_it_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "fleet.yml", "fleet.yml")
    heard: list[bytes] = []
    with talking(server(heard=heard)) as port:
        monkeypatch.setenv("OVMS_8B_URL", f"http://127.0.0.1:{port}/v3")
        code = main(["quality", "--url", f"http://127.0.0.1:{port}", "--json", "out.json", "--concurrency", "9"])
    assert code == 1
    assert [one[:4] for one in heard] == [b"GET "]
    told = capsys.readouterr().out
    assert "skipped: 2 of the 2 requests allowed are left for it, and it needs 5" in told
    assert "skipped: 1 of 16 tasks may be asked: its answer may need 64 tokens, and 16 are allowed" in told
    assert {suite.missing.missing for suite in result().suites if suite.missing and suite.judged} == {MissingReason.SKIPPED}
