"""What people wrote keeps its meaning on the site, its links work there, and it runs nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.manuscript import published
from tests.gen.reading import Reader, html_of, read
from tests.gen.specimens import HOSTILE

PAGES = {
    "adr/2026-07-10-kv-cache-fleet.md": "records/2026-07-10-kv-cache-fleet.md",
    "adr/evidence/r1.json": "runs/r1.md",
    "docs/contract.md": "contract.md",
    "fleet.yml": "fleet.md",
}
HERE = "records/2026-07-10-x.md"


def written(body: str) -> str:
    return published(body, "adr", PAGES.get, HERE)


def shown(body: str) -> Reader:
    return read(written(body))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[the other](2026-07-10-kv-cache-fleet.md)", "2026-07-10-kv-cache-fleet.md"),
        ("[part](2026-07-10-kv-cache-fleet.md#what-is-known)", "2026-07-10-kv-cache-fleet.md#what-is-known"),
        ("[run](evidence/r1.json)", "../runs/r1.md"),
        ("[contract](../docs/contract.md#gates)", "../contract.md#gates"),
        ("[inventory](../fleet.yml#L10)", "../fleet.md"),
        ("[inventory](./../fleet.yml 'the inventory')", "../fleet.md"),
        ("[out](https://example.invalid/a_b?c=1)", "https://example.invalid/a_b?c=1"),
        ("<https://example.invalid/>", "https://example.invalid/"),
        ("[ref]\n\n[ref]: evidence/r1.json", "../runs/r1.md"),
        ("## Gates\n\n[here](#gates)", "#gates"),
        ("[two\nlines](evidence/r1.json)", "../runs/r1.md"),
    ],
)
def test_links_lead_to_what_shows_their_target(source: str, target: str) -> None:
    assert ("a", "href", target) in shown(source).attributes


@pytest.mark.parametrize(
    "source",
    [
        "[c](javascript:alert(1))",
        "[c](JAVASCRIPT:alert(1))",
        "[c]( javascript:alert(1) )",
        "[c\nd](javascript:alert(1))",
        "[c]\n\n[c]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "[c](data:text/html,x)",
        "[c](//evil.invalid/x)",
        "[gone](../gen/nothing.py)",
        "[out](../../../etc/passwd)",
        "![picture](http://evil.invalid/b.png)",
        "![picture][ref]\n\n[ref]: http://evil.invalid/b.png",
    ],
)
def test_other_links_and_pictures_become_text(source: str) -> None:
    reader = shown(source)
    assert not {"a", "img"} & set(reader.tags)
    assert reader.text.strip()


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "    ```\n<script>alert(1)</script>",
        "```\nunclosed <script>alert(1)</script>",
        "one `\n\n`<script>alert(1)</script>` two",
        "one `\n`<script>alert(1)</script>` two",
        "x <img src=x onerror=alert(1)> y",
        "# Title {onclick=alert(1)}\n\n## Second {#a onclick=alert(1)}",
        "[x](evidence/r1.json){onclick=alert(1)}",
        "<details open ontoggle=alert(1)><summary>s</summary>\n\nx\n\n</details>",
        "<div markdown=1>\n\n<script>alert(1)</script>\n\n</div>",
        "| a |\n|---|\n| <script>alert(1)</script> |",
        "- item\n\n      <script>alert(1)</script>",
        "> <script>alert(1)</script>",
        "---\ntitle: evil\n---",
        *HOSTILE,
    ],
)
def test_html_runs_nothing(source: str) -> None:
    reader = shown(source)
    assert not {"script", "img", "style", "svg", "iframe"} & set(reader.tags)
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]


BITS = ("`", "```", "~~~", "    ", "- ", "> ", "|a|\n|-|\n", "\n", "[", "](x)", "<", "<!--", "-->", "*", "_", "{", "}", "\\")


@given(st.lists(st.one_of(st.sampled_from([*HOSTILE, *BITS, "&lt;script&gt;"]), st.text(max_size=6)), max_size=12))
def test_no_mixture_runs_anything(parts: list[str]) -> None:
    reader = shown("".join(parts))
    assert not {"script", "img", "style", "svg", "iframe", "think"} & set(reader.tags)
    for _, name, value in reader.attributes:
        assert not name.startswith("on")
        assert name != "href" or value.startswith(("http", "#", "../", "2026"))


def test_structure_is_kept() -> None:
    body = (
        "# The page has this one\n\n## Context and *problem*\n\nOne `a|b` two\nthree.  \nfour\n\n1. first\n2. second\n\n"
        "   more\n   - nested **deep**\n\n> quoted\n\n```sh\nnox -s probe  # <b>\n```\n\n    indented\n\n| A | B |\n|---|--:|\n"
        "| x | `y\\|z` |\n\n<!-- for the writer -->\n"
    )
    page = html_of(written(body))
    reader = shown(body)
    assert "The page has this one" not in page
    assert '<h2 id="context-and-problem">' in page
    assert [tag for tag in reader.tags if tag in {"ol", "ul", "blockquote", "pre", "table", "em", "strong"}] == [
        "em", "ol", "ul", "strong", "blockquote", "pre", "pre", "table"
    ]  # fmt: skip
    assert reader.tags.count("li") == 3
    assert "a|b" in reader.text
    assert "y|z" in reader.text
    assert "nox -s probe  # <b>" in reader.text
    assert "for the writer" not in reader.text


def test_a_second_title_is_a_section_of_the_page() -> None:
    page = html_of(written("# The page has this one\n\ntext\n\n# Another\n"))
    assert "<h1" not in page
    assert '<h2 id="another">' in page


def test_repeated_headings_keep_apart() -> None:
    assert [value for tag, name, value in shown("## Gates\n\n## Gates\n\n## 漢字\n").attributes if name == "id"] == [
        "gates",
        "gates-1",
        "section",
    ]


def test_an_empty_body_is_an_empty_page() -> None:
    assert written("") == written("<!-- nothing yet -->") == ""
