"""Whatever a server says is seen as it was said, and never does anything."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gen.markdown import (
    NO_TEXT,
    Markdown,
    block,
    bullets,
    code,
    details,
    external,
    fenced,
    heading,
    line,
    link,
    sentence,
    span,
    text,
    visible,
)
from tests.gen.reading import read
from tests.gen.specimens import HOSTILE

ANY = st.text(max_size=60)
# Weighted towards what Markdown, HTML and tables read.
TRICKY = st.text(alphabet="\\`*_{}[]()#+-.!|<>&\"'~^=:$@%/ \t\nab1é", max_size=40)


def as_seen(value: str) -> str:
    """Reduce text to what a page can show of it: no outer blanks, runs of blanks as one."""
    lines = [re.sub(r"[^\S\n]+", " ", each).strip() for each in re.split(r"\r\n|\r|\n", visible(value))]
    return "\n".join(lines)


@given(st.one_of(ANY, TRICKY, st.sampled_from(HOSTILE)))
@example("a\\|b")
@example("2026. not a list")
@example("- not a list")
@example("---")
@example("&lt;b&gt; &#60; &amp;")
@example("[a](b){ .c }")
@example("    code?")
def test_text_reads_back_as_it_was(value: str) -> None:
    if value.strip():
        assert as_seen(read(text(value)).text) == as_seen(value).strip("\n") or as_seen(read(text(value)).text) == as_seen(
            value
        )


@given(st.one_of(ANY, TRICKY, st.sampled_from(HOSTILE)))
def test_text_makes_no_element_but_line_breaks(value: str) -> None:
    assert set(read(f"x {text(value)} y").tags) <= {"p", "br", "em"}


@given(st.one_of(ANY, TRICKY, st.sampled_from(HOSTILE)))
def test_code_is_one_element(value: str) -> None:
    assert set(read(f"x {code(value)} y").tags) <= {"p", "code", "br", "em"}


@given(st.one_of(TRICKY, st.sampled_from(HOSTILE)))
def test_a_heading_keeps_its_anchor_and_gains_no_attribute(value: str) -> None:
    reader = read(heading(2, text(value), "facts"))
    assert ("h2", "id", "facts") in reader.attributes
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]


@given(st.text(alphabet="`~ \nabc<>&|*", max_size=60))
def test_a_fence_holds_any_text(value: str) -> None:
    """Blanks at the ends of lines and blank lines at the ends may go; nothing else, and nothing is read as Markdown."""
    reader = read(fenced(value))
    assert [each.rstrip() for each in reader.text.strip("\n ").split("\n")] == [
        each.rstrip() for each in visible(value).strip("\n ").split("\n")
    ]
    assert set(reader.tags) <= {"div", "pre", "code", "span", "p"}


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "around",
    [
        lambda value: bullets([text(value), sentence(value)]),
        lambda value: block(text(value), "note"),
        lambda value: details(text(value), text(value)),
        lambda value: span(text(value), "note", title=value),
        lambda value: link(text(value), "a/b.md", "chip"),
        lambda value: external(text(value), value),
        lambda value: external(text(value), f"https://example.invalid/{value}"),
    ],
)
def test_hostile_text_runs_nothing_wherever_it_stands(value: str, around) -> None:  # type: ignore[no-untyped-def]
    reader = read(around(value))
    assert not {"script", "img", "style", "iframe", "svg", "think"} & set(reader.tags)
    for _, name, content in reader.attributes:
        assert not name.startswith("on")
        assert name not in {"href", "src"} or content.startswith(("a/b", "https://example.invalid/"))


def test_invisible_characters_are_shown() -> None:
    assert visible("a\u202eb\u200b\x00") == "a⟨U+202E⟩b⟨U+200B⟩⟨U+0000⟩"
    assert visible("lone \ud800") == "lone ?"
    assert visible("ä ∑ 漢 \t") == "ä ∑ 漢 \t"


def test_nothing_is_never_blank() -> None:
    assert text("") == text(" \n ") == code("") == NO_TEXT


def test_special_tokens_of_models_stay_visible() -> None:
    assert read(text("DeepSeek<think> ; <|im_start|>x")).text == "DeepSeek<think> ; <|im_start|>x"


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//host/x", "http://", "https://a b", "http://[", "x"]
)
def test_only_http_leads_out(url: str) -> None:
    assert "a" not in read(external(text("there"), url)).tags
    assert url.split("\n", maxsplit=1)[0] in read(external(text("there"), url)).text


def test_an_outward_link_keeps_its_address() -> None:
    url = "https://example.invalid/a_b*(c)?x=1&y=[2]|3"
    assert ("a", "href", url) in read(external(text("there"), url)).attributes


@pytest.mark.parametrize("target", ["javascript:alert(1)", "a b.md", "a.md){ onclick=x }", "http://x"])
def test_a_link_of_our_own_is_a_path(target: str) -> None:
    with pytest.raises(ValueError, match="relative path"):
        link(text("x"), target)


def test_parts_are_joined_without_the_empty_ones() -> None:
    assert line(Markdown("a"), Markdown(""), Markdown("b")) == "a b"


@pytest.mark.parametrize(
    ("said", "shown"), [("Keep it", "Keep it."), ("Why?", "Why?"), ("It is on. ", "It is on."), ("so …", "so …")]
)
def test_a_sentence_has_one_end(said: str, shown: str) -> None:
    assert read(sentence(said)).text == shown
