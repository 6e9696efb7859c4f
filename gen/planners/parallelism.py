"""How to spread a model over devices: whether it fits into one, and if not, which way of splitting it suits the link."""

from __future__ import annotations

from gen.planners.card_memory import LEFT, Room, room
from gen.planners.plan import Plan, Planner
from gen.planners.tree import Answer, Leaf, Path, Question, Reply, walk
from gen.view import ServiceView, View
from probes.evidence import ProvenanceKind

# The source asks for 600 GB/s between the parts of a tensor-parallel model: every layer ends in an exchange.
TENSOR_GBIT_S = 4800.0

REPLICAS = Leaf(name="replicas", advice="One device holds the model: a second copy is what adds throughput")
EXPERTS = Leaf(name="experts", advice="Spread the experts over the devices, and watch how evenly they are used")
TENSOR = Leaf(name="tensor", advice="Split every layer over the devices of one host")
PIPELINE = Leaf(name="pipeline", advice="Give each device a run of layers, and keep several requests in flight")
TREE = Question(
    name="fits",
    text="Do weights and KV pool fit into one device?",
    yes=REPLICAS,
    no=Question(
        name="experts",
        text="Is it a mixture of experts?",
        yes=EXPERTS,
        no=Question(
            name="link",
            text=f"Are the devices in one host, with {TENSOR_GBIT_S / 8:g} GB/s between them?",
            yes=TENSOR,
            no=PIPELINE,
        ),
    ),
)


def plan(view: View, service: ServiceView) -> Plan:
    """Hold what a service keeps in memory against what its card has."""
    found = room(view, service)
    return Plan(
        planner=Planner.PARALLELISM,
        subject=service.name,
        lead=LEFT,
        given=found.given,
        worked=found.worked,
        gaps=found.gaps,
        sources=("llm-inference-skill-hub", *found.sources),
    )


def decide(view: View, service: ServiceView) -> Path:
    """Walk the tree for one service."""
    return walk(TREE, {"fits": _fits(room(view, service)), "experts": _experts(), "link": _link(view)})


def _fits(found: Room) -> Answer:
    if not found.left:
        return Answer(reply=Reply.UNKNOWN, because=f"{' and '.join(gap.name for gap in found.gaps)} would tell")
    fitting = [card for card, span in found.left if span.low > 0]
    lacking = [card for card, span in found.left if span.high < 0]
    needed = "" if found.needed is None else found.needed.said()
    known = ProvenanceKind.DECLARED
    if len(fitting) == len(found.left):
        return Answer(reply=Reply.YES, because=f"{needed} fit on {' and on '.join(fitting)}", known=known)
    if len(lacking) == len(found.left):
        return Answer(reply=Reply.NO, because=f"{needed} do not fit on {' or on '.join(lacking)}", known=known)
    if fitting:
        others = [card for card, _ in found.left if card not in fitting]
        because = f"{needed} fit on {' and on '.join(fitting)} and may not on {' or on '.join(others)}: which card serves it?"
        return Answer(reply=Reply.UNKNOWN, because=because)
    return Answer(reply=Reply.UNKNOWN, because=f"{needed} may or may not fit: the exact bytes of the weights would tell")


def _experts() -> Answer:
    return Answer(reply=Reply.UNKNOWN, because="the configuration of the model would tell")


def _link(view: View) -> Answer:
    link = view.fleet.topology.interconnect_gbit_s
    if link is None:
        return Answer(reply=Reply.NO, because="the inventory declares no link", known=ProvenanceKind.DECLARED)
    reply = Reply.YES if link >= TENSOR_GBIT_S else Reply.NO
    return Answer(reply=reply, because=f"{link:g} Gbit/s are declared", known=ProvenanceKind.DECLARED)
