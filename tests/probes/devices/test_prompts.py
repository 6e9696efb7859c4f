"""Prompts that are the same everywhere and share no beginning."""

from __future__ import annotations

from probes.devices.prompts import prompt_set_sha256, token_ids


def test_a_name_gives_the_same_ids_on_every_machine() -> None:
    assert token_ids("capability 0", 5) == token_ids("capability 0", 200)[:5]
    assert token_ids("capability 0", 4) == (1553, 540, 1186, 1174)


def test_names_differ_from_the_first_block_on() -> None:
    assert len({token_ids(f"prefix {n}", 16) for n in range(50)}) == 50


def test_ids_are_words_of_any_vocabulary() -> None:
    assert all(300 <= token <= 2300 for token in token_ids("x", 5000))


def test_a_set_is_identified_by_its_prompts_and_their_order() -> None:
    one, two = token_ids("a", 3), token_ids("b", 3)
    assert prompt_set_sha256([one, two]) == prompt_set_sha256([list(one), list(two)])
    assert prompt_set_sha256([one, two]) != prompt_set_sha256([two, one])
