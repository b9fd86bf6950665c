"""Draw the house from its imports: layers, floors and rooms of a checkout (``make house``).

A room is a folder of a layer (or a file that lies loose in it). It stands one floor above the highest room that it
imports from. Imports that run back (from a lower layer or floor to a higher one) can only come from circles, which are
named. ``python .ci/house.py [CHECKOUT]`` prints the figures, with ``--svg FILE`` it draws them.
"""

import argparse
import ast
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import networkx as nx

#: from the top of the house to its ground
LAYERS = ("src", "sim", "gen", "hw", "model")
_COLOURS = {"src": "#e8e3f1", "sim": "#dcebf7", "gen": "#fbe8d3", "hw": "#f9dcdc", "model": "#dff0e0"}
_ROOM_WIDTH, _ROOM_HEIGHT, _GAP, _FLOOR = 128, 44, 14, 74


class House(NamedTuple):
    """Rooms of a checkout.

    Attributes
    ----------
    lines : dict
        Lines of each room, by its name (``model/router``).
    imports : dict
        ``{(room, room): files that import}`` between different rooms.
    floor : dict
        Floor of each room inside its layer, from 1.
    circles : list of set
        Rooms of one layer that import each other.
    back : list
        Imports from a lower layer to a higher one.
    """

    lines: dict[str, int]
    imports: dict[tuple[str, str], int]
    floor: dict[str, int]
    circles: list[set[str]]
    back: list[tuple[str, str]]


def _modules(checkout: Path) -> dict[str, Path]:
    """Files by dotted name without ``hopforge.``; the commands are one room of the layer ``src``."""
    found = {}
    for layer in LAYERS:
        top = checkout / layer if layer != "src" else checkout / "src" / "hopforge"
        for path in sorted(top.rglob("*.py")):
            parts = list(path.relative_to(top).with_suffix("").parts)
            if layer == "src" and parts[0] in (*LAYERS, "moved", "__main__"):  # links to the other layers, no rooms
                continue
            found[".".join([layer, *(part for part in parts if part != "__init__")])] = path
    return found


def _room(name: str, path: Path) -> str:
    layer, *rest = name.split(".")
    inside = rest if path.name == "__init__.py" else rest[:-1]
    if inside:
        return f"{layer}/{inside[0]}"
    return f"{layer}/{rest[-1]}" if rest and path.name != "__init__.py" else layer


def _imported(tree: ast.Module, modules: dict[str, Path]) -> set[str]:
    """Names of our modules that a file imports, at its head or inside of a function."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("hopforge"):
            continue
        base = (node.module or "").removeprefix("hopforge").lstrip(".")
        base = base if base.split(".")[0] in LAYERS else f"src.{base}".rstrip(".")
        for alias in node.names:
            name = f"{base}.{alias.name}"
            found.add(name if name in modules else base)
    return found & modules.keys()


def read_house(checkout: Path) -> House:
    """Measure the rooms of a checkout."""
    modules = _modules(checkout)
    rooms = {name: _room(name, path) for name, path in modules.items()}
    lines: dict[str, int] = defaultdict(int)
    imports: dict[tuple[str, str], int] = defaultdict(int)
    for name, path in modules.items():
        text = path.read_text(encoding="utf-8")
        lines[rooms[name]] += text.count("\n")
        for room in {rooms[other] for other in _imported(ast.parse(text), modules)} - {rooms[name], *LAYERS[:2]}:
            imports[rooms[name], room] += 1
    lines = {room: count for room, count in lines.items() if "/" in room}
    imports = {pair: count for pair, count in imports.items() if set(pair) <= lines.keys()}
    graph = nx.DiGraph((a, b) for a, b in imports if a.split("/")[0] == b.split("/")[0])
    graph.add_nodes_from(lines)
    circles = [set(one) for one in nx.strongly_connected_components(graph) if len(one) > 1]
    floors = nx.condensation(graph)
    floor: dict[str, int] = {}
    for node in reversed(list(nx.topological_sort(floors))):
        members = floors.nodes[node]["members"]
        below = max((floor[next(iter(floors.nodes[b]["members"]))] for b in floors.successors(node)), default=0)
        floor.update(dict.fromkeys(members, below + 1))
    back = [(a, b) for a, b in imports if LAYERS.index(a.split("/")[0]) > LAYERS.index(b.split("/")[0])]
    return House(lines, imports, floor, circles, back)


def draw(house: House) -> str:
    """Return the house as SVG: bands are layers, rows are floors; imports that others imply are not drawn."""
    rows: list[tuple[str, list[str]]] = []
    for layer in LAYERS:
        mine = [room for room in house.lines if room.split("/")[0] == layer]
        for floor in sorted({house.floor[room] for room in mine}, reverse=True):
            rows.append((layer, sorted(room for room in mine if house.floor[room] == floor)))
    widest = max(len(rooms) for _, rooms in rows)
    width = 110 + widest * (_ROOM_WIDTH + _GAP)
    place, parts, y, previous = {}, [], 16, ""
    for layer, rooms in rows:
        y += 14 if layer != previous else 0
        parts.append(f'<rect x="0" y="{y}" width="{width}" height="{_FLOOR}" fill="{_COLOURS[layer]}"/>')
        if layer != previous:
            parts.append(f'<text x="14" y="{y + 28}" class="layer">{"cli" if layer == "src" else layer}</text>')
        left = 100 + (width - 110 - len(rooms) * (_ROOM_WIDTH + _GAP)) // 2
        for k, room in enumerate(rooms):
            place[room] = (left + k * (_ROOM_WIDTH + _GAP), y + (_FLOOR - _ROOM_HEIGHT) // 2)
        y, previous = y + _FLOOR, layer
    reduced = nx.transitive_reduction(nx.DiGraph(pair for pair in house.imports if pair not in house.back))
    for a, b in sorted(reduced.edges):
        (x1, y1), (x2, y2) = place[a], place[b]
        x1, x2, y1 = x1 + _ROOM_WIDTH // 2, x2 + _ROOM_WIDTH // 2, y1 + _ROOM_HEIGHT
        bend = (y2 - y1) // 2
        parts.append(f'<path d="M{x1} {y1} C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}" class="import"/>')
    for room, (x, top) in place.items():
        name = room.split("/")[-1]
        parts.append(
            f'<g id="{escape(room)}" data-floor="{house.floor[room]}">'
            f'<rect x="{x}" y="{top}" width="{_ROOM_WIDTH}" height="{_ROOM_HEIGHT}" rx="6" class="room"/>'
            f'<text x="{x + _ROOM_WIDTH // 2}" y="{top + 19}" class="name">{escape(name)}</text>'
            f'<text x="{x + _ROOM_WIDTH // 2}" y="{top + 35}" class="lines">{_count(house.lines[room])}</text></g>'
        )
    style = (
        "text{font-family:sans-serif;text-anchor:middle;fill:#222}"
        ".layer{font-size:18px;font-weight:bold;text-anchor:start}"
        ".name{font-size:14px;font-weight:bold}.lines{font-size:11px;fill:#555}.room{fill:#fff;stroke:#666}"
        ".import{fill:none;stroke:#777;stroke-width:1;opacity:.55}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 16}" width="{width}" height="{y + 16}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _count(lines: int) -> str:
    return f"{lines / 1000:.1f} k lines" if lines >= 1000 else f"{lines} lines"


def main() -> int:
    """Print the figures of a checkout; return 1 if it has circles or imports that run back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", default=Path())
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    house = read_house(options.checkout)
    for layer in LAYERS:
        rooms = [room for room in house.lines if room.split("/")[0] == layer]
        total = sum(house.lines[room] for room in rooms)
        floors = max(house.floor[room] for room in rooms)
        sys.stdout.write(f"{layer}: {len(rooms)} rooms on {floors} floors, {total} lines\n")
    total = sum(house.lines.values())
    sys.stdout.write(f"all: {total} lines; circles: {len(house.circles)}; imports that run back: {len(house.back)}\n")
    sys.stdout.writelines(f"  circle: {', '.join(sorted(circle))}\n" for circle in house.circles)
    sys.stdout.writelines(f"  back: {a} imports from {b}\n" for a, b in house.back)
    if options.svg:
        options.svg.write_text(draw(house), encoding="utf-8")
    return 1 if house.circles or house.back else 0


if __name__ == "__main__":
    sys.exit(main())
