"""Reads a request for text the way OVMS does: the same fields, limits, statuses and complaints.

Statuses and sentences follow OVMS's source at 7e4df0c7 (2026-08-21): src/http_rest_api_handler.cpp,
src/llm/apis/openai_api_handler.cpp and openai_completions.cpp. What OVMS can do and this service cannot is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from probes.endpoints.embedded.frames import Decoding, Message

CHAT_PATHS: Final = ("/v3/chat/completions", "/v3/v1/chat/completions", "/v1/chat/completions")
TEXT_PATHS: Final = ("/v3/completions", "/v3/v1/completions", "/v1/completions")

_UINT32: Final = 2**32 - 1
_MAX_STOP_STRINGS: Final = 16
# Each field with the values that ask for nothing. Others would change the answer, so they must not pass unnoticed.
_UNSUPPORTED: Final[Mapping[str, tuple[Any, ...]]] = {
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "min_p": (0,),
    "skip_special_tokens": (True,),
    "chat_template_kwargs": ({},),
    "modalities": (["text"],),
    "num_assistant_tokens": (0,),
    "assistant_confidence_threshold": (0,),
    "max_ngram_size": (0,),
}


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the service
    """A request that gets an error status; `words` is what the body says."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A request that can be run."""

    chat: bool
    model: str
    prompt: str | tuple[Message, ...]
    stream: bool
    include_usage: bool
    decoding: Decoding


def read_completion(path: str, content_type: str, body: bytes, model: str) -> Completion:
    """Read a POST to a generative path; `model` is the one that is served.

    Raises:
        Refusal: 412 for a body that is no request, 404 for another model, 400 for a field out of bounds.
    """
    document, stream = _document(path, content_type, body)
    if document["model"] != model:
        raise Refusal(404, "Mediapipe graph definition with requested name is not found")
    if path not in CHAT_PATHS + TEXT_PATHS:
        raise invalid("Wrong endpoint. Allowed endpoints: /v[13]/chat/completions, /v[13]/completions")
    fields = _Fields(document)
    for name, harmless in _UNSUPPORTED.items():
        value = document.get(name)
        if value is not None and value not in harmless:
            raise invalid(f"{name} is not supported by the embedded service")
    include_usage = _include_usage(fields, stream=stream)
    chat = path in CHAT_PATHS
    prompt = _messages(document) if chat else _prompt(document)
    decoding = _decoding(fields, chat=chat, stream=stream)
    return Completion(chat=chat, model=model, prompt=prompt, stream=stream, include_usage=include_usage, decoding=decoding)


def invalid(words: str) -> Refusal:
    """Refuse with OVMS's frame for errors inside a graph."""
    return Refusal(400, f"Mediapipe execution failed. MP status - INVALID_ARGUMENT: {words}")


def _document(path: str, content_type: str, body: bytes) -> tuple[dict[str, Any], bool]:
    if "application/json" not in content_type:
        # OVMS takes the rest of the path for the model's name then.
        raise Refusal(404, "Mediapipe graph definition with requested name is not found")
    try:
        document = json.loads(body, parse_constant=_no_constant)
        json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except RecursionError as exc:
        raise Refusal(412, "JSON body exceeds maximum nesting depth") from exc
    except ValueError as exc:
        raise Refusal(412, "Cannot parse JSON body") from exc
    if not isinstance(document, dict):
        raise Refusal(412, "JSON body must be an object")
    if "model" not in document:
        raise Refusal(412, "model field is missing in JSON body")
    if not isinstance(document["model"], str):
        raise Refusal(412, "model field is not a string")
    stream = document.get("stream", False)
    if "completions" in path and not isinstance(stream, bool):
        raise Refusal(412, "stream field is not a boolean")
    return document, stream is True


def _no_constant(word: str) -> None:
    raise ValueError(word)


class _Fields:
    """Optional fields of a request; null counts as absent."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def get(self, name: str) -> Any:
        return self._document.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._document

    def flag(self, name: str) -> bool | None:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise invalid(f"{name} accepts values true or false")
        return value

    def number(self, name: str, default: float, bounds: tuple[float, float] | None = None) -> float:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise invalid(f"{name} is not a valid number")
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise invalid(f"{name} out of range({bounds[0]:.1f}, {bounds[1]:.1f})")
        return float(value)

    def unsigned(self, name: str) -> int:
        value = self.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise invalid(f"{name} is not an unsigned integer")
        if value > _UINT32:
            raise invalid(f"{name} value can't be greater than {_UINT32}")
        return value


def _include_usage(fields: _Fields, *, stream: bool) -> bool:
    options = fields.get("stream_options")
    if options is None:
        return False
    if not stream:
        raise invalid("stream_options provided, but stream not set to true")
    if not isinstance(options, dict):
        raise invalid("stream_options is not an object")
    if set(options) - {"include_usage"}:
        raise invalid("Found unexpected stream options. Properties accepted in stream_options: include_usage")
    include = options.get("include_usage", False)
    if not isinstance(include, bool):
        raise invalid("stream_options.include_usage is not a boolean")
    return include


def _decoding(fields: _Fields, *, chat: bool, stream: bool) -> Decoding:
    return Decoding(
        max_tokens=_max_tokens(fields, chat=chat),
        ignore_eos=fields.flag("ignore_eos") or False,
        temperature=fields.number("temperature", 1.0, (0.0, 2.0)),
        top_p=fields.number("top_p", 1.0, (0.0, 1.0)),
        top_k=_top_k(fields.get("top_k")),
        seed=_seed(fields.get("seed")),
        frequency_penalty=fields.number("frequency_penalty", 0.0, (-2.0, 2.0)),
        presence_penalty=fields.number("presence_penalty", 0.0, (-2.0, 2.0)),
        repetition_penalty=fields.number("repetition_penalty", 1.0),
        stop=_stop(fields.get("stop")),
        include_stop=_include_stop(fields, stream=stream),
    )


def _max_tokens(fields: _Fields, *, chat: bool) -> int | None:
    limit = fields.unsigned("max_tokens") if "max_tokens" in fields else None
    if chat and fields.get("max_completion_tokens") is not None:
        limit = fields.unsigned("max_completion_tokens")
    if limit == 0:
        raise invalid("max_tokens value should be greater than 0" + ("" if chat else " unless echo is set"))
    return limit


def _top_k(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid("top_k is not an integer")
    if value < -1 or value == 0 or value > _UINT32:
        raise invalid("top_k must be -1 (all tokens) or a positive integer")
    return value


def _seed(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid("seed is not an integer")
    if not 0 <= value <= _UINT32:
        raise invalid(f"seed out of range [0, {_UINT32}]")
    return value


def _stop(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list):
        raise invalid("stop is not a string or array of strings")
    if len(words) > _MAX_STOP_STRINGS:
        raise invalid(f"stop array must have no more than {_MAX_STOP_STRINGS} strings")
    if not all(isinstance(word, str) for word in words):
        raise invalid("stop array contains non string element")
    return tuple(word for word in words if word)


def _include_stop(fields: _Fields, *, stream: bool) -> bool:
    include = fields.flag("include_stop_str_in_output")
    if stream and include is False:
        raise invalid("include_stop_str_in_output cannot be set to false if streaming is used")
    return stream if include is None else include


def _prompt(document: Mapping[str, Any]) -> str:
    prompt = document.get("prompt", "")
    if not isinstance(prompt, str):
        raise invalid("prompt is not a string")
    if not prompt:
        raise invalid("prompt is missing")
    return prompt


def _messages(document: Mapping[str, Any]) -> tuple[Message, ...]:
    if "messages" not in document:
        raise invalid("Messages missing in request")
    messages = document["messages"]
    if not isinstance(messages, list):
        raise invalid("Messages are not an array")
    if not messages:
        raise invalid("Messages array cannot be empty")
    return tuple(_message(message) for message in messages)


def _message(message: object) -> Message:
    if not isinstance(message, dict):
        raise invalid("Message is not a JSON object")
    role = message.get("role")
    if not isinstance(role, str):
        raise invalid("Every message must have 'role' field")
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise invalid("Invalid message structure")
    return Message(role=role, content=content or "")


def _part(part: object) -> str:
    if not isinstance(part, dict):
        raise invalid("Invalid message structure - content array should contain objects")
    kind, text = part.get("type"), part.get("text")
    if not isinstance(kind, str):
        raise invalid("Invalid message structure - content object type missing")
    if kind == "image_url":
        raise invalid("This servable supports only text input, but image_url has been provided")
    if kind != "text":
        raise invalid("Unsupported content type")
    if not isinstance(text, str):
        raise invalid("Invalid message structure - content text missing")
    return text
