"""What a user's relation looks at beyond destination and input: for lookups, tables and look-ahead."""

from collections.abc import Iterator

from hopforge.model.routing.contract.fields_read import EXPLORED, fields_read
from hopforge.model.routing.contract.plan import RoutingPlan


def unknown_inputs(plan: RoutingPlan, *, phase_known: bool) -> Iterator[str]:
    """Tell, in words, on what the answers depend beyond destination and input; nothing for algorithms of ours.

    Those say it in the fields of their plans. A file may say there what it likes, so its code is read.

    Parameters
    ----------
    plan : RoutingPlan
        The routing algorithm.
    phase_known : bool
        Whether ``packet.phase`` may decide.
    """
    if plan.unguarded is None:
        return
    reads = fields_read(plan.unguarded.route)
    if reads.draws:
        yield "draws random numbers"
    for what in (*reads.unseen, *reads.changing):
        yield f"reads {what}"
    for name in EXPLORED:
        if name in reads.state and not (phase_known and name == "phase"):
            yield f"reads packet.{name}"
