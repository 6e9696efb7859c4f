"""The run of one endpoint in a few lines for the person at the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from probes.evidence import Metric, Missing, Run

_SHOWN = ("ttft_s", "ttft_repeat_s", "decode_tok_s", "latency_s", "error_rate", "requests_running", "kv_cache_usage")


def lines(run: Run) -> list[str]:
    """Say what answered, what it has switched on, how fast it was and what it does not tell."""
    return list(_lines(run))


def _lines(run: Run) -> Iterator[str]:
    endpoint = run.endpoint
    if endpoint is None:
        return
    url = endpoint.url if isinstance(endpoint.url, str) else endpoint.url.detail
    yield f"{url}: {endpoint.state}" + (f" ({endpoint.detail})" if endpoint.detail else "")
    if not isinstance(run.runtime, Missing):
        version = run.runtime.version
        yield f"  runtime   {run.runtime.name} " + (
            version if isinstance(version, str) else f"(version unknown: {version.detail})"
        )
    for model in endpoint.models:
        yield f"  model     {model.id}: {model.state}" + (f" ({model.detail})" if model.detail else "")
    for setting in run.settings:
        value = str(setting.value).lower() if isinstance(setting.value, bool) else setting.value
        yield f"  setting   {setting.control} = {value} ({setting.provenance.kind}, {setting.technique})"
    for metric in run.metrics if any(metric.samples for metric in run.metrics) else ():
        if metric.name in _SHOWN:
            yield f"  measured  {metric.name} {_value(metric)}"
    silent = run.native.get("not_told")
    for one in silent if isinstance(silent, list) else ():
        if isinstance(one, dict) and one.get("control"):
            yield f"  not told  {one['control']} ({one['technique']}){_default(one)}"


def _default(untold: Mapping[str, JsonValue]) -> str:
    """Say what holds unless somebody set it, and in which release."""
    if "default" not in untold:
        return ""
    default = untold["default"]
    return f": {str(default).lower() if isinstance(default, bool) else default} unless set, in {untold['default_of']}"


def _value(metric: Metric) -> str:
    if metric.missing is not None:
        return f"{metric.missing.missing}" + (f": {metric.missing.detail}" if metric.missing.detail else "")
    return f"{', '.join(f'{sample:.4g}' for sample in metric.samples)} {metric.unit}"
