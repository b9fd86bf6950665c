"""What routers can do for classes of traffic: `router.qos` against the other keys."""

from collections.abc import Iterator

from hopforge.model.config.base import Problem
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.routing import RoutingConfig
from hopforge.model.config.traffic import TrafficConfig


def quality_problems(router: RouterConfig, routing: RoutingConfig, traffic: TrafficConfig) -> Iterator[Problem]:
    """Return what the routers cannot do for the classes of traffic; keys are from the root of the file."""
    classes = traffic.classes
    if router.qos != "none" and not classes:
        yield Problem("router.qos", f"{router.qos} needs traffic.classes")
    if not classes:
        return
    if router.model != "input_queued":
        yield Problem("traffic.classes", f"needs router.model=input_queued, not {router.model}")
        return
    if routing.decision == "host":
        yield Problem("routing.decision", "host is for traffic without classes")
    counts = [each.vcs for each in classes if each.vcs is not None]
    if counts and sum(counts) != router.vcs:
        together = " + ".join(map(str, counts))
        yield Problem("router.vcs", f"must be those of traffic.classes, {together} = {sum(counts)}, not {router.vcs}")
    longest = max(each.packet_flits or traffic.packet_flits for each in classes)
    if router.switching != "wormhole" and longest > router.buffer_flits:
        yield Problem(
            "traffic.classes",
            f"packet_flits must be at most router.buffer_flits={router.buffer_flits} with "
            f"router.switching={router.switching}, not {longest}",
        )
    if router.qos == "none":
        return
    if not counts:
        yield Problem("router.qos", f"{router.qos} needs classes with vcs of their own (traffic.classes.vcs)")
    if router.qos == "strict" and len({each.priority for each in classes}) == 1:
        yield Problem("router.qos", f"strict needs classes of different priority, not all of {classes[0].priority}")
    for key, wrong in (
        ("speculation", router.speculation is not False),
        ("hold_switch", router.hold_switch),
        ("sa", router.sa == "input_ahead"),
    ):
        if wrong:
            value = str(getattr(router, key)).lower()
            yield Problem(f"router.{key}", f"cannot be {value} with router.qos={router.qos}")
