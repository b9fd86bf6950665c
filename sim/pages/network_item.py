"""The network of a result as an item of the report, as long as the page stays small."""

from dataclasses import dataclass

from hopforge.model.errors import UserError
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_result import has_network
from hopforge.sim.pages.network_view import network_view, view_facts
from hopforge.sim.pages.report import NetworkView, embedded_bytes

__all__ = ["DRAWN_ONLY", "ViewBudget", "report_view"]

DRAWN_ONLY = frozenset(["link_loads", "router_flits"])
"""Tables with a column for each moment, which only the picture shows."""


@dataclass
class ViewBudget:
    """Bytes of networks that a page may still take, and the most of one."""

    left: int = 8 << 20
    one: int = 2 << 20


def report_view(result: ResultSet, budget: ViewBudget) -> tuple[NetworkView | None, str]:
    """Return the network of a result, or None, and why it is not drawn."""
    if not has_network(result):
        return None, ""
    try:
        data = network_view(result)
    except UserError as error:
        return None, f"The network is not drawn: {error}"
    size = embedded_bytes(data)
    if size > min(budget.one, budget.left):
        return None, f"The network is not drawn here: {size / (1 << 20):.1f} MiB. hopforge view draws it in a page."
    budget.left -= size
    do = "Click a router, or type two to see the way between them." if data["ways"] else "Click a router."
    words = f"{view_facts(data)} {data['how'][:1].upper()}{data['how'][1:]}. {do} {' '.join(data['notes'])}"
    return NetworkView("The network", data, words.strip(), result.command), ""
