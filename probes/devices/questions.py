"""Questions in plain words: random token ids hide what a trained head can do and how far rounding leads answers astray."""

from __future__ import annotations

from pathlib import Path

from probes import telemetry

TOKENIZER = "openvino_tokenizer.xml"
QUESTIONS = (
    "Explain in a few sentences why the sky is blue.",
    "Write a short note that tells a colleague that the meeting has moved to Friday.",
    "List five things to pack for a day of hiking in the mountains.",
    "What does a compiler do, and how does it differ from an interpreter?",
    "Summarise the water cycle for a child of ten.",
    "Write a Python function that returns the largest number in a list.",
    "How do I cook rice so that it does not stick together?",
    "Give three advantages and three disadvantages of working from home.",
    "Describe a quiet village by the sea in the early morning.",
)


def question_ids(ir: Path) -> tuple[tuple[int, ...], ...]:
    """Turn the questions into token ids by the tokenizer and the chat template of a model folder."""
    telemetry.silence()
    import openvino_genai

    tokenizer = openvino_genai.Tokenizer(str(ir))
    return tuple(
        tuple(int(token) for token in tokenizer.encode(_asked(tokenizer, text)).input_ids.data.ravel()) for text in QUESTIONS
    )


def _asked(tokenizer: object, text: str) -> str:
    try:
        return str(tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True))  # type: ignore[attr-defined]
    except RuntimeError:
        return text  # a base model has no chat template and continues the text as it is
