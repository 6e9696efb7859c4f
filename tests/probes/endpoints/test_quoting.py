"""Words of an endpoint are kept redacted, on their line and short; what a reader needs of them stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.endpoints.address import parse_address
from probes.endpoints.quoting import LINE_CHARACTERS, Quoter
from probes.redaction import Redactor


def quoter(key: str | None = None, url: str = "http://ovms.lan:8000/v3", shown: str = "${OVMS_8B_URL}") -> Quoter:
    return Quoter(Redactor(), key=key, address=parse_address(url, "url"), shown=shown)


@pytest.mark.parametrize("words", ["sk+A/b-123456", "SK+a/B-123456", "sk%2BA%2Fb-123456", "sk+A\\/b-123456"])
def test_key_is_redacted_in_every_spelling(words: str) -> None:
    assert quoter("sk+A/b-123456").line(f"bad key {words}.") == "bad key [redacted]."


def test_placeholder_that_servers_want_as_a_key_is_no_secret() -> None:
    assert quoter("none").line("speculation: none") == "speculation: none"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("no route to http://ovms.lan:8000/v3/models", "no route to ${OVMS_8B_URL}/v3/models"),
        ("certificate is not valid for 'ovms.lan'", "certificate is not valid for '${OVMS_8B_URL}'"),
        ("ovms.lan:8000 refused", "${OVMS_8B_URL} refused"),
    ],
)
def test_address_is_replaced_by_its_reference(words: str, kept: str) -> None:
    assert quoter().line(words) == kept


def test_address_that_is_shown_anyway_stays() -> None:
    assert quoter(shown="http://ovms.lan:8000/v3").line("ovms.lan:8000 refused") == "ovms.lan:8000 refused"


def test_one_word_host_is_too_common_to_be_replaced() -> None:
    assert quoter(url="http://server").line("server error") == "server error"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("loaded /srv/models/alice/Qwen3/model.gguf", "loaded …/model.gguf"),
        (r"C:\Users\alice\model.gguf", "…/model.gguf"),
        ("POST /v1/chat/completions failed", "POST /v1/chat/completions failed"),
        ("see https://example.com/home/alice/x", "see https://example.com/home/alice/x"),
    ],
)
def test_folders_of_the_serving_machine_are_left_out(words: str, kept: str) -> None:
    assert quoter().line(words) == kept


def test_models_of_the_same_name_in_different_folders_stay_apart() -> None:
    first, second = quoter().model("/srv/alice/Qwen3"), quoter().model("/srv/bob/Qwen3")
    assert first.startswith("…/Qwen3 (path ")
    assert first != second
    assert quoter().model("OpenVINO/Qwen3-8B-int4-ov") == "OpenVINO/Qwen3-8B-int4-ov"


@given(st.text())
def test_line_is_one_printable_line_of_bounded_length(text: str) -> None:
    line = quoter("canary-key").line(text)
    assert len(line) <= LINE_CHARACTERS
    assert not line or line.isprintable()


@given(st.text(max_size=400), st.integers(min_value=1, max_value=40))
def test_no_cut_leaves_half_a_key(padding: str, limit: int) -> None:
    key = "zq9-canary-zq9"
    assert "zq9" not in quoter(key).line(f"{padding.replace('zq9', '')} {key}", limit)
