"""A request is read, and refused, as OVMS would: status and sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.endpoints.embedded.frames import Decoding, Message
from probes.endpoints.embedded.request import Completion, Refusal, read_completion

MODEL = "SmolLM2-135M-Instruct"
CHAT, TEXT = "/v3/chat/completions", "/v3/completions"
MESSAGES = [{"role": "user", "content": "Hi"}]


def _read(path: str, **fields: Any) -> Completion:
    return read_completion(path, "application/json", json.dumps({"model": MODEL, **fields}).encode(), MODEL)


def _refused(path: str, **fields: Any) -> str:
    with pytest.raises(Refusal) as caught:
        _read(path, **fields)
    assert caught.value.status == 400
    frame = "Mediapipe execution failed. MP status - INVALID_ARGUMENT: "
    assert caught.value.words.startswith(frame)
    return caught.value.words.removeprefix(frame)


def test_defaults_are_those_of_ovms() -> None:
    assert _read(CHAT, messages=MESSAGES) == Completion(
        chat=True,
        model=MODEL,
        prompt=(Message(role="user", content="Hi"),),
        stream=False,
        include_usage=False,
        decoding=Decoding(temperature=1.0, top_p=1.0),
    )


def test_every_field_arrives() -> None:
    completion = _read(
        TEXT,
        prompt="Once",
        stream=True,
        stream_options={"include_usage": True},
        max_tokens=7,
        ignore_eos=True,
        temperature=0,
        top_p=0.5,
        top_k=-1,
        seed=2**32 - 1,
        frequency_penalty=1,
        presence_penalty=-1.5,
        repetition_penalty=1.1,
        stop=["a", "b"],
    )
    assert (completion.chat, completion.prompt, completion.stream, completion.include_usage) == (False, "Once", True, True)
    assert completion.decoding == Decoding(
        max_tokens=7,
        ignore_eos=True,
        temperature=0.0,
        top_p=0.5,
        top_k=-1,
        seed=2**32 - 1,
        frequency_penalty=1.0,
        presence_penalty=-1.5,
        repetition_penalty=1.1,
        stop=("a", "b"),
        include_stop=True,
    )


def test_the_newer_name_of_the_token_limit_wins_in_a_chat() -> None:
    assert _read(CHAT, messages=MESSAGES, max_tokens=5, max_completion_tokens=6).decoding.max_tokens == 6
    assert _read(TEXT, prompt="x", max_tokens=5, max_completion_tokens=6).decoding.max_tokens == 5


def test_parts_of_a_message_become_lines() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    completion = _read(CHAT, messages=[{"role": "user", "content": parts}, {"role": "assistant", "content": None}])
    assert completion.prompt == (Message(role="user", content="one\ntwo"), Message(role="assistant", content=""))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "Cannot parse JSON body"),
        (b"{", "Cannot parse JSON body"),
        (b'{"model": NaN}', "Cannot parse JSON body"),
        (b'{"model": "\xff"}', "Cannot parse JSON body"),
        (b'{"model": "\\ud800"}', "Cannot parse JSON body"),
        (b"[" * 100_000, "JSON body exceeds maximum nesting depth"),
        (b"[]", "JSON body must be an object"),
        (b"{}", "model field is missing in JSON body"),
        (b'{"model": 1}', "model field is not a string"),
        (b'{"model": "x", "stream": 1}', "stream field is not a boolean"),
    ],
)
def test_what_is_no_request_gets_412(body: bytes, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_completion(CHAT, "application/json", body, MODEL)
    assert (caught.value.status, caught.value.words) == (412, words)


@pytest.mark.parametrize(
    ("model", "content"), [("", "application/json"), ("another", "application/json"), (MODEL, "text/plain"), (MODEL, "")]
)
def test_another_model_gets_404(model: str, content: str) -> None:
    """Without a JSON content type OVMS takes the model's name from the path."""
    with pytest.raises(Refusal) as caught:
        read_completion(CHAT, content, json.dumps({"model": model}).encode(), MODEL)
    assert (caught.value.status, caught.value.words) == (404, "Mediapipe graph definition with requested name is not found")


def test_another_path_below_v3_is_a_wrong_endpoint() -> None:
    assert _refused("/v3/embeddings").startswith("Wrong endpoint. Allowed endpoints: ")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_tokens": 0}, "max_tokens value should be greater than 0"),
        ({"max_completion_tokens": 0}, "max_tokens value should be greater than 0"),
        ({"max_tokens": -5}, "max_tokens is not an unsigned integer"),
        ({"max_tokens": None}, "max_tokens is not an unsigned integer"),
        ({"max_tokens": 2**32}, "max_tokens value can't be greater than 4294967295"),
        ({"max_tokens": True}, "max_tokens is not an unsigned integer"),
        ({"temperature": "hot"}, "temperature is not a valid number"),
        ({"temperature": True}, "temperature is not a valid number"),
        ({"temperature": 2.5}, "temperature out of range(0.0, 2.0)"),
        ({"top_p": -0.1}, "top_p out of range(0.0, 1.0)"),
        ({"top_k": 0}, "top_k must be -1 (all tokens) or a positive integer"),
        ({"top_k": 1.5}, "top_k is not an integer"),
        ({"seed": -1}, "seed out of range [0, 4294967295]"),
        ({"seed": "x"}, "seed is not an integer"),
        ({"ignore_eos": 1}, "ignore_eos accepts values true or false"),
        ({"frequency_penalty": 3}, "frequency_penalty out of range(-2.0, 2.0)"),
        ({"stop": 1}, "stop is not a string or array of strings"),
        ({"stop": [1]}, "stop array contains non string element"),
        ({"stop": ["x"] * 17}, "stop array must have no more than 16 strings"),
        ({"stream_options": {"include_usage": True}}, "stream_options provided, but stream not set to true"),
        ({"stream": True, "stream_options": 1}, "stream_options is not an object"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage is not a boolean"),
        ({"stream": True, "stream_options": {"more": 1}}, "Found unexpected stream options. Properties accepted in "
         "stream_options: include_usage"),
        ({"stream": True, "include_stop_str_in_output": False}, "include_stop_str_in_output cannot be set to false if "
         "streaming is used"),
        ({"messages": []}, "Messages array cannot be empty"),
        ({"messages": "Hi"}, "Messages are not an array"),
        ({"messages": ["Hi"]}, "Message is not a JSON object"),
        ({"messages": [{"content": "Hi"}]}, "Every message must have 'role' field"),
        ({"messages": [{"role": "user", "content": 1}]}, "Invalid message structure"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "This servable supports only text input, "
         "but image_url has been provided"),
    ],
)  # fmt: skip
def test_a_field_out_of_bounds_gets_400(fields: dict[str, Any], words: str) -> None:
    assert _refused(CHAT, **{"messages": MESSAGES, **fields}) == words


def test_a_chat_without_messages_and_a_text_without_prompt() -> None:
    assert _refused(CHAT) == "Messages missing in request"
    assert _refused(TEXT) == "prompt is missing"
    assert _refused(TEXT, prompt="") == "prompt is missing"
    assert _refused(TEXT, prompt=["a", "b"]) == "prompt is not a string"
    assert _refused(TEXT, prompt="x", max_tokens=0) == "max_tokens value should be greater than 0 unless echo is set"


@pytest.mark.parametrize(
    ("name", "asked", "harmless"),
    [
        ("n", 2, 1),
        ("best_of", 3, 1),
        ("tools", [{"type": "function"}], []),
        ("response_format", {"type": "json_object"}, {"type": "text"}),
        ("logprobs", True, False),
        ("echo", True, False),
        ("logit_bias", {"1": 2}, {}),
    ],
)
def test_what_would_change_the_answer_is_refused_and_not_ignored(name: str, asked: Any, harmless: Any) -> None:
    assert _refused(CHAT, messages=MESSAGES, **{name: asked}) == f"{name} is not supported by the embedded service"
    for value in (harmless, None):
        assert _read(CHAT, messages=MESSAGES, **{name: value}).decoding == Decoding()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(
    ["messages", "prompt", "stream", "stream_options", "max_tokens", "temperature", "top_k", "seed", "stop", "n", "tools"]
)


@given(st.sampled_from([CHAT, TEXT]), st.dictionaries(_NAMES, _JSON, max_size=5))
def test_any_json_is_read_or_refused(path: str, fields: dict[str, Any]) -> None:
    try:
        completion = _read(path, **fields)
    except Refusal as refusal:
        assert (refusal.status in {400, 412}, bool(refusal.words)) == (True, True)  # noqa: PT017
    else:
        assert completion.prompt
