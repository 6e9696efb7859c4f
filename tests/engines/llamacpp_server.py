"""Starts a real llama.cpp server on 127.0.0.1 and serves until it is ended; prints its port when it is ready.

    python llamacpp_server.py MODEL.gguf PORT [NAME=VALUE ...]

NAME is an attribute of llama.cpp's CommonParams and VALUE a Python literal such as n_parallel=2, a member of one of its
enums such as cache_type_k=GGML_TYPE_Q8_0, or a list of those.
"""

from __future__ import annotations

import ast
import signal
import sys
from typing import Any

import xllamacpp


def main(model: str, port: str, *settings: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"smollm2-135m"}
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.endpoint_metrics = True
    params.n_ctx = 2048
    params.fit_params = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    for setting in settings:
        name, _, value = setting.partition("=")
        _set(params, name, _read(value))
    server = xllamacpp.Server(params)
    print(f"READY {server.listening_address}", flush=True)  # noqa: T201
    signal.pause()


def _read(text: str) -> Any:
    if text.startswith("["):
        return [_read(one.strip()) for one in text.strip("[]").split(",")]
    enums = (xllamacpp.ggml_type, xllamacpp.common_speculative_type, xllamacpp.llama_flash_attn_type)
    member = next((getattr(enum, text) for enum in enums if hasattr(enum, text)), None)
    return ast.literal_eval(text) if member is None else member


def _set(params: Any, name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        params = getattr(params, part)
    setattr(params, last, value)


if __name__ == "__main__":
    main(*sys.argv[1:])
