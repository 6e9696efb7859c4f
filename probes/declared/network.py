"""A network by its inputs and operations, and what kind of model it is by them: the same for IR and ONNX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from probes.evidence import ModelKind

# Operations that are a whole attention layer, as OpenVINO and the exporters of ONNX name them.
ATTENTION: Final = frozenset(
    {
        "ScaledDotProductAttention",
        "ScaledDotProductAttentionWithKVCache",
        "PagedAttentionExtension",
        "Attention",
        "MultiHeadAttention",
        "GroupQueryAttention",
    }
)
SOFTMAX: Final = frozenset({"Softmax", "SoftMax"})
PRODUCT: Final = frozenset({"MatMul", "Gemm", "FullyConnected"})
# What may stand between the scores of attention and their product with the values, and changes no number.
PASSING: Final = frozenset({"Reshape", "Transpose", "Convert", "Cast", "Dropout", "Unsqueeze", "Squeeze", "Identity"})
_RECURRENT: Final = frozenset(
    {"LSTM", "GRU", "RNN", "LSTMCell", "LSTMSequence", "GRUCell", "GRUSequence", "RNNCell", "RNNSequence"}
)
_CACHED: Final = re.compile(r"past_key_values?\.\d|past\.\d|(?:key|value)_cache\.\d|cache_[kv](?:\.|_l)\d")
# What a caller hands back to the next call of a network whose recurrent layers are written out in plain operations.
_CARRIED: Final = re.compile(r"(?:state|hidden|cell|h|c)_?\d?(?:_in)?")
_CONVOLUTION: Final = re.compile(r"Convolution|GroupConvolution|Conv|ConvInteger|QLinearConv")


@dataclass(frozen=True, kw_only=True)
class Network:
    """One network. `states` are variables that it keeps itself between calls, by name, `attention` counts attention layers."""

    inputs: frozenset[str]
    states: tuple[str, ...]
    operations: Mapping[str, int]
    attention: int

    @property
    def cached(self) -> int:
        """How many tensors of keys and values of attention it keeps itself or takes back from its caller."""
        return sum(1 for name in (*self.states, *self.inputs) if _CACHED.search(name))

    @property
    def recurrent(self) -> int:
        """How many recurrent layers it has."""
        return sum(count for name, count in self.operations.items() if name in _RECURRENT)

    @property
    def convolutions(self) -> int:
        """How many convolutions it has."""
        return sum(count for name, count in self.operations.items() if _CONVOLUTION.fullmatch(name))

    @property
    def kind(self) -> ModelKind:
        """What it is by its structure."""
        if self.cached:
            crossing = any("encoder_hidden_states" in name for name in self.inputs)
            return ModelKind.ENCODER_DECODER if crossing else ModelKind.DECODER
        if self.states and any("input_ids" in name for name in self.inputs):
            return ModelKind.STATE_SPACE_DECODER
        if any(name.rpartition("/")[2] in {"timestep", "timesteps"} for name in self.inputs):
            return ModelKind.DIFFUSION
        if self.attention:
            return ModelKind.ENCODER
        carried = self.recurrent or self.states or any(_CARRIED.fullmatch(name) for name in self.inputs)
        return ModelKind.RECURRENT if carried else ModelKind.FEED_FORWARD

    @property
    def why(self) -> str:
        """Say in counts what its kind was told by."""
        counts = [
            _counted(self.cached, "tensor", "of a KV cache"),
            _counted(len(self.states), "state variable"),
            _counted(self.attention, "attention layer"),
        ]
        counts += [_counted(self.recurrent, "recurrent layer")] if self.recurrent else []
        carried = sorted(name for name in self.inputs if _CARRIED.fullmatch(name))
        counts += [f"{' and '.join(carried)} handed from call to call"] if carried else []
        counts += [_counted(self.convolutions, "convolution")] if self.convolutions else []
        return ", ".join(counts)


def attention_layers(operations: Mapping[str, int], edges: Iterable[tuple[str, str]], types: Mapping[str, str]) -> int:
    """Count attention layers: whole operations, and softmaxes whose result is multiplied with something.

    `edges` lead from node to node, `types` names the operation of those that matter. The softmax at the end of a
    classifier is multiplied with nothing.
    """
    onward: dict[str, list[str]] = {}
    for source, sink in edges:
        if source in types and sink in types:
            onward.setdefault(source, []).append(sink)
    scores = sum(1 for node, kind in types.items() if kind in SOFTMAX and _reaches_product(node, onward, types))
    return scores + sum(count for name, count in operations.items() if name in ATTENTION)


def matters(operation: str) -> bool:
    """Tell whether `attention_layers` has to know a node by its operation."""
    return operation in SOFTMAX or operation in PRODUCT or operation in PASSING


def _reaches_product(node: str, onward: Mapping[str, list[str]], types: Mapping[str, str]) -> bool:
    waiting, seen = [*onward.get(node, ())], {node}
    while waiting:
        sink = waiting.pop()
        if types[sink] in PRODUCT:
            return True
        if types[sink] in PASSING and sink not in seen:
            seen.add(sink)
            waiting += onward.get(sink, ())
    return False


def _counted(count: int, noun: str, more: str = "") -> str:
    named = f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
    return f"{named} {more}" if more else named
