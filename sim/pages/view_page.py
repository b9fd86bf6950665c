"""The page of `hopforge view`: the network of one result, and nothing else."""

from collections.abc import Callable
from pathlib import Path

from hopforge.model.errors import UserError
from hopforge.sim.pages.find import ResultSet, find_results
from hopforge.sim.pages.network_result import NETWORK_KINDS, has_network
from hopforge.sim.pages.network_view import network_view, view_facts
from hopforge.sim.pages.report import NetworkView, Report, Section

__all__ = ["one_result", "view_page"]

_HOW = (
    "Click a router to see its ports, virtual channels and caches. Drag to move; +, − and 0 zoom and show all (mouse: "
    "Ctrl and the wheel; phone: two fingers). Arrow keys choose the next router, Escape ends."
)


def one_result(folder: Path, ignore: Path, progress: Callable[[int, int], None] | None = None) -> ResultSet:
    """Return the result in a folder that has a network to be drawn.

    Parameters
    ----------
    folder : Path
        Of one run, or with exactly one such run below it.
    ignore : Path
        The page itself.
    progress : callable, optional
        Called with (files done, in all).

    Raises
    ------
    UserError
        No such result, or several: names them.
    """
    found = find_results(folder, ignore, progress)
    own = [result for result in found.sets if result.folder == "." and has_network(result)]
    chosen = own or [result for result in found.sets if has_network(result)]
    known = ", ".join(NETWORK_KINDS) + " of a graph"  # of other programs `app` tells no links
    if not chosen:
        damaged = f"; {found.problems[0]}" if found.problems else ""
        raise UserError(f"{folder}: no result of {known} in it{damaged}")
    if len(chosen) > 1:
        names = ", ".join(str(folder / result.folder) for result in chosen[:6])
        raise UserError(f"{folder}: holds {len(chosen)} results with a network; name one of {names}")
    (result,) = chosen
    prefix = "" if result.folder == "." else f"{result.folder}/"
    for problem in found.problems:
        if problem.path.startswith(prefix) and "/" not in problem.path.removeprefix(prefix):
            raise UserError(f"{folder / problem.path}: {problem.reason}")
    result.folder = str(folder if result.folder == "." else folder / result.folder)
    return result


def view_page(result: ResultSet, command: str) -> Report:
    """Return the page of a result.

    Raises
    ------
    UserError
        Its tables do not fit its network.
    """
    data = network_view(result)
    way = " Type two routers to see the way from one to the other." if data["ways"] else ""
    caption = f"{data['how'][:1].upper()}{data['how'][1:]}. {_HOW}{way} {' '.join(data['notes'])}".strip()
    view = NetworkView(f"{data['title']} ({result.kind})", data, caption, result.command)
    return Report(
        f"{data['title']}: {data['name']}", view_facts(data), [Section("Network", items=[view])],
        {"result": result.command, "page": command}, wide=True,
    )  # fmt: skip
