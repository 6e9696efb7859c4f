"""What the models are given: made by arithmetic from a number, so that every machine gives them the same."""

from __future__ import annotations

from typing import Any, Final

SAMPLE_RATE: Final = 16_000
_SENTENCE: Final = (
    "the server answers each request in turn and keeps what it has read in memory while a second one waits for its "
    "place in the queue until the first is done so that no two of them ever share the same slot at any time"
)


def text(number: int, words: int = 48) -> str:
    """Give a text; each number begins at another word."""
    known = _SENTENCE.split()
    return " ".join(known[(number * 7 + n) % len(known)] for n in range(words))


def picture(number: int, *, side: int = 224) -> Any:
    """Give a picture of smooth waves, side x side x 3, in the range that Caffe's models were trained with (mean removed)."""
    import numpy as np

    along = np.linspace(0, 2 * np.pi, side, dtype=np.float32)
    waves = [
        np.sin(along[:, None] * (1 + number % 5) + channel) * np.cos(along[None, :] * (2 + channel)) for channel in range(3)
    ]
    return (100 * np.stack(waves, axis=-1)).astype(np.float32)


def file_ends(number: int, *, length: int = 2048) -> Any:
    """Give the ends of a file of text as bytes, one integer each."""
    import numpy as np

    content = (f"# file {number}\n" + text(number, 900)).encode()
    return np.frombuffer(content[:length], dtype=np.uint8).astype(np.int32)


def sound(number: int, seconds: float) -> Any:
    """Give a tone that rises and falls in loudness over a little noise, as numbers between -1 and 1."""
    import numpy as np

    at = np.arange(int(seconds * SAMPLE_RATE), dtype=np.float32) / SAMPLE_RATE
    noise = np.random.default_rng(number).standard_normal(at.size).astype(np.float32)
    loudness = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * at)
    return (0.3 * loudness * np.sin(2 * np.pi * (180 + 20 * (number % 4)) * at) + 0.01 * noise).astype(np.float32)


def mel(samples: Any, *, bands: int = 80, frames: int = 3000) -> Any:
    """Give the log-mel spectrogram that Whisper reads: 25 ms windows each 10 ms, Slaney's mel scale, 8 decades down.

    The steps are those of openai/whisper's audio.py.
    """
    import numpy as np

    size, hop = 400, 160
    clip = np.pad(samples, (0, max(0, frames * hop - samples.size)))
    padded = np.pad(clip, size // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)[: frames * hop : hop]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    power = np.abs(np.fft.rfft(windows * window, axis=-1)) ** 2
    logged = np.log10(np.maximum(power @ _filters(bands, size).T, 1e-10))
    limited = np.maximum(logged, logged.max() - 8.0)
    return np.ascontiguousarray(((limited + 4.0) / 4.0).T, dtype=np.float32)


def _filters(bands: int, size: int) -> Any:
    """Give triangles that overlap on Slaney's scale, linear below 1 kHz and logarithmic above, each of one area."""
    import numpy as np

    def to_hertz(mels: Any) -> Any:
        return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)))

    top = 15 + 27 * np.log(SAMPLE_RATE / 2 / 1000) / np.log(6.4)
    edges = to_hertz(np.linspace(0, top, bands + 2))
    bins = np.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
