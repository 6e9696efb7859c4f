"""What a runtime said, without where it was thrown."""

from __future__ import annotations

import pytest

from probes.devices.words import LIMIT, runtime_words

COMPILE = """\
Exception from src/inference/src/cpp/core.cpp:117:
Exception from src/inference/src/dev/plugin.cpp:54:
Check 'all_of(ov::element::f32, key_cache_type, value_cache_type)' failed at /home/build/agent/x/AVX2/executor_pa.cpp:2938:
expect kvcache type f32, current: u3 , u3


"""
LIBRARY = """\
Exception from src/inference/src/cpp/core.cpp:268:
Cannot load library "/opt/../openvino/libs/libopenvino_intel_gpu_plugin.so": libOpenCL.so.1: cannot open shared object file
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (COMPILE, "expect kvcache type f32, current: u3 , u3"),
        (LIBRARY, 'Cannot load library "libopenvino_intel_gpu_plugin.so": libOpenCL.so.1: cannot open shared object file'),
        (
            "Check 'm_ireq' failed at /home/build/src/cpp/src/tokenizer.cpp:627:\n",
            "Check 'm_ireq' failed at tokenizer.cpp:627:",
        ),
        ("one line", "one line"),
        ("two\n  lines", "two lines"),
        ("a/b.cpp and src/x.hpp stay", "a/b.cpp and src/x.hpp stay"),
        ("", ""),
    ],
)
def test_places_go_and_sentences_stay(text: str, words: str) -> None:
    assert runtime_words(text) == words


def test_a_long_message_is_cut() -> None:
    words = runtime_words("x" * 5000)
    assert len(words) == LIMIT
    assert words.endswith("…")
