"""Checks of ``router.model`` against section `traffic`."""

from collections.abc import Iterator

from hopforge.model.config.base import Problem
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.traffic import TrafficConfig


def router_model_problems(router: RouterConfig, traffic: TrafficConfig) -> Iterator[Problem]:
    """Return what of the traffic the router model cannot carry; keys are from the root of the file."""
    if router.model == "input_output_queued":
        if traffic.source != "program" and traffic.longest_flits() != 1:
            yield Problem(
                "traffic.packet_flits",
                f"packets must have 1 flit with router.model=input_output_queued, not {traffic.longest_flits()}",
            )
    elif router.model == "packet":
        if traffic.source != "bernoulli":
            yield Problem("traffic.source", f"is for other models than router.model=packet, not {traffic.source}")
        elif traffic.longest_flits() != 1:
            yield Problem(
                "traffic.packet_flits",
                f"must be 1 with router.model=packet (packet.packet_bytes is the size), not {traffic.longest_flits()}",
            )
    elif traffic.source in ("interval", "rounds"):
        yield Problem("traffic.source", f"{traffic.source} needs router.model=input_output_queued, not {router.model}")
