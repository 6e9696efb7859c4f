"""An EAGLE-3 head with random weights, written as OpenVINO IR with the runtime's own operators."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from probes.drafts.shape import IR_NAME, Shape

# Published heads for vocabularies of 128,000 to 152,000 draft from 32,000 tokens, about a quarter.
MOST_DRAFT_VOCAB: Final = 32_000
_LAYER: Final = "model.midlayer"
_MASKED: Final = -65504.0  # the lowest f16


def usual_draft_vocab(vocab: int) -> int:
    """Give the draft vocabulary that a published head for a target of this size would have."""
    return min(MOST_DRAFT_VOCAB, max(vocab // 4, 1))


def build_head(
    shape: Shape, folder: Path, *, eos: int, draft_vocab: int | None = None, aim: Sequence[int] = (), seed: int = 0
) -> None:
    """Write a head for a target into a folder.

    Random weights draft tokens that are never right, so what remains is the cost of drafting. With `aim`
    every draft stands for one of those target tokens, and where the target says them, drafts are accepted.
    The contract is the one that OpenVINO GenAI's eagle3_strategy.cpp and its model transforms read.
    """
    import numpy as np
    import openvino as ov

    source = np.random.default_rng(seed)
    size = draft_vocab or usual_draft_vocab(shape.vocab)
    ids = np.resize(np.asarray(aim, np.int64), size) if aim else np.sort(source.choice(shape.vocab, size, replace=False))
    model = _Graph(shape, source).model(offsets=ids - np.arange(size, dtype=np.int64))
    model.set_rt_info("True", ["eagle3_mode"])
    model.set_rt_info(", ".join(map(str, shape.tapped)), ["hidden_layers_list"])
    folder.mkdir(parents=True, exist_ok=True)
    ov.serialize(model, str(folder / IR_NAME))
    # Without an end-of-text id the runtime loads the head and then refuses to generate.
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))


class _Graph:
    """One decoder layer whose input is the target's hidden states beside the embedding of the next token."""

    def __init__(self, shape: Shape, source: Any) -> None:
        import openvino

        self._op = openvino.opset13
        self._state = openvino.opset6
        self._type = openvino.Type
        self._shape = shape
        self._source = source

    def model(self, *, offsets: Any) -> Any:
        """Assemble the head; `offsets` lead from a draft id to the target's (target = draft + offset)."""
        import numpy as np
        import openvino as ov

        op, shape = self._op, self._shape
        ids, mask = self._input("input_ids", "i64", 2), self._input("attention_mask", "i64", 2)
        positions, hidden = self._input("position_ids", "i64", 2), self._input("hidden_states", "f32", 3)
        beam = self._input("beam_idx", "i32", 1)
        # The runtime puts the target's own table in the place of this one.
        table = self._constant(np.zeros((1, shape.hidden), np.float32), "model.embed_tokens.weight")
        embedded = op.gather(table, op.convert(ids, self._type.i32), self._constant(np.int32(0)))
        # The runtime moves this projection to the end of the target.
        joined = self._project(hidden, shape.hidden, 3 * shape.hidden, "model.fc")
        x = op.concat([self._norm(embedded), self._norm(joined)], -1)
        attended, caches = self._attention(x, ids=ids, mask=mask, positions=positions, beam=beam)
        residual = op.add(joined, self._project(attended, shape.hidden, shape.heads * shape.head_size, f"{_LAYER}.o_proj"))
        y = self._norm(residual)
        gate = op.swish(self._project(y, shape.intermediate, shape.hidden, f"{_LAYER}.gate_proj"))
        gated = op.multiply(gate, self._project(y, shape.intermediate, shape.hidden, f"{_LAYER}.up_proj"))
        end = op.add(residual, self._project(gated, shape.hidden, shape.intermediate, f"{_LAYER}.down_proj"))
        # By this name the runtime finds the state that it feeds back as the next step's hidden_states.
        end.set_friendly_name(f"{_LAYER}/mlp_residual")
        logits = self._project(self._norm(end), len(offsets), shape.hidden, "lm_head")
        results = [self._result(logits, "logits"), self._result(self._constant(offsets, "model.d2t"), "d2t")]
        return ov.Model(results, caches, [ids, mask, positions, hidden, beam], "eagle3_draft")

    def _attention(self, x: Any, *, ids: Any, mask: Any, positions: Any, beam: Any) -> tuple[Any, list[Any]]:
        """Attend over a cache in the form that SDPAToPagedAttention rewrites."""
        import numpy as np

        op, shape = self._op, self._shape
        width, size = 2 * shape.hidden, shape.head_size
        cos, sin = self._rotation(positions)
        query = self._rotated(self._split(x, "q", shape.heads, width), cos, sin)
        key = self._rotated(self._split(x, "k", shape.kv_heads, width), cos, sin)
        value = self._split(x, "v", shape.kv_heads, width)
        batch = op.gather(self._lengths(ids), self._int64([0]), self._int64(0))
        empty = op.broadcast(self._constant(np.float32(0)), op.concat([batch, self._int64([shape.kv_heads, 0, size])], 0))
        (keys, kept_keys), (values, kept_values) = (
            self._cached(name, new, empty, beam) for name, new in (("key", key), ("value", value))
        )
        total = op.gather(self._lengths(mask), self._int64(1), self._int64(0))
        columns = op.unsqueeze(op.range(self._int64(0), total, self._int64(1), self._type.i64), self._int64([0, 1, 2]))
        seen = op.less_equal(columns, op.unsqueeze(positions, self._int64([1, 3])))
        causal = op.select(seen, self._constant(np.float32(0)), self._constant(np.float32(_MASKED)))
        attended = op.transpose(op.scaled_dot_product_attention(query, keys, values, causal), self._int64([0, 2, 1, 3]))
        return op.reshape(attended, self._int64([0, 0, shape.heads * size]), True), [kept_keys, kept_values]  # noqa: FBT003

    def _cached(self, name: str, new: Any, empty: Any, beam: Any) -> tuple[Any, Any]:
        from openvino import PartialShape
        from openvino.op.util import Variable, VariableInfo

        op, shape = self._op, self._shape
        info = VariableInfo()
        info.data_shape = PartialShape([-1, shape.kv_heads, -1, shape.head_size])
        info.data_type = self._type.f32
        info.variable_id = f"past_key_values.0.{name}present.0.{name}"
        variable = Variable(info)
        past = op.gather(self._state.read_value(empty, variable), beam, self._int64(0))
        full = op.concat([past, new], 2)
        # Each key-value head is repeated for the query heads that share it.
        outer, inner = (op.gather(self._lengths(full), self._int64(axes), self._int64(0)) for axes in ([0, 1], [2, 3]))
        repeats = op.concat([outer, self._int64([shape.heads // shape.kv_heads]), inner], 0)
        repeated = op.broadcast(op.unsqueeze(full, self._int64([2])), repeats, "BIDIRECTIONAL")
        heads = op.reshape(repeated, self._int64([0, shape.heads, -1, shape.head_size]), True)  # noqa: FBT003
        return heads, self._state.assign(full, variable)

    def _rotation(self, positions: Any) -> tuple[Any, Any]:
        import numpy as np

        op, size = self._op, self._shape.head_size
        frequencies = (self._shape.rope_theta ** (-np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, 1, -1)
        column = op.unsqueeze(op.convert(positions, self._type.f32), self._int64([2]))
        half = op.matmul(column, self._constant(frequencies), False, False)  # noqa: FBT003
        angles = op.unsqueeze(op.concat([half, half], -1), self._int64([1]))
        return op.cos(angles), op.sin(angles)

    def _rotated(self, x: Any, cos: Any, sin: Any) -> Any:
        import numpy as np

        op, size = self._op, self._shape.head_size
        first, second = (
            op.slice(x, self._int64([start]), self._int64([end]), self._int64([1]), self._int64([3]))
            for start, end in ((0, size // 2), (size // 2, size))
        )
        turned = op.concat([op.multiply(second, self._constant(np.full((1, 1, 1, 1), -1, np.float32))), first], 3)
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))

    def _split(self, x: Any, name: str, heads: int, width: int) -> Any:
        flat = self._project(x, heads * self._shape.head_size, width, f"{_LAYER}.{name}_proj")
        parts = self._op.reshape(flat, self._int64([0, 0, heads, self._shape.head_size]), True)  # noqa: FBT003
        return self._op.transpose(parts, self._int64([0, 2, 1, 3]))

    def _norm(self, x: Any) -> Any:
        import numpy as np

        op = self._op
        ones = np.ones((1, 1, 1), np.float32)
        square = op.reduce_mean(op.power(x, self._constant(2 * ones)), self._int64([-1]), keep_dims=True)
        root = op.sqrt(op.add(square, self._constant(self._shape.eps * ones)))
        weight = self._constant(np.ones((1, 1, self._shape.hidden), np.float32))
        return op.multiply(op.multiply(x, op.divide(self._constant(ones), root)), weight)

    def _project(self, x: Any, rows: int, columns: int, name: str) -> Any:
        """Multiply with random weights, kept as f16 and widened where they are used."""
        import numpy as np

        weights = (self._source.standard_normal((rows, columns), dtype=np.float32) * np.float32(0.02)).astype(np.float16)
        wide = self._op.convert(self._constant(weights, f"{name}.weight"), self._type.f32)
        product = self._op.matmul(x, wide, False, True)  # noqa: FBT003
        product.set_friendly_name(f"{name}/MatMul")
        return product

    def _lengths(self, x: Any) -> Any:
        return self._op.shape_of(x, output_type="i64")

    def _input(self, name: str, kind: str, rank: int) -> Any:
        from openvino import PartialShape

        parameter = self._op.parameter(PartialShape([-1] * rank), getattr(self._type, kind), name=name)
        parameter.output(0).set_names({name})
        return parameter

    def _result(self, x: Any, name: str) -> Any:
        result = self._op.result(x, name)
        result.output(0).set_names({name})
        return result

    def _int64(self, value: int | list[int]) -> Any:
        import numpy as np

        return self._constant(np.asarray(value, np.int64))

    def _constant(self, value: Any, name: str | None = None) -> Any:
        constant = self._op.constant(value)
        if name is not None:
            constant.set_friendly_name(name)
        return constant
