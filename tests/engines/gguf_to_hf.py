"""Turns the packaged GGUF file into the folder that vLLM reads; runs in vLLM's environment.

python gguf_to_hf.py MODEL.gguf FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import transformers
from transformers.utils import quantization_config


def main(model: str, folder: str) -> None:
    path = Path(model)
    # Without it, the weights stay quantized and save_pretrained refuses them (transformers 5).
    config = quantization_config.GgufConfig(dequantize=True)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32, quantization_config=config
    )
    loaded.config.__dict__.pop("quantization_config", None)
    loaded.is_quantized = False
    loaded.hf_quantizer = None
    loaded.to(torch.bfloat16).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name).save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
