"""Plans: what follows by arithmetic from a model's shape, a device and what was measured; pure, one module per planner."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from gen.planners import bottleneck, decode_roofline, disaggregation, kv_capacity, parallelism, speculation
from gen.planners.plan import Plan, Planner
from gen.view import ServiceView, View

PLANS: MappingProxyType[Planner, Callable[[View, ServiceView], Plan]] = MappingProxyType(
    {
        Planner.KV_CAPACITY: kv_capacity.plan,
        Planner.DECODE_ROOFLINE: decode_roofline.plan,
        Planner.SPECULATION: speculation.plan,
        Planner.DISAGGREGATION: disaggregation.plan,
        Planner.PARALLELISM: parallelism.plan,
        Planner.BOTTLENECK: bottleneck.plan,
    }
)
