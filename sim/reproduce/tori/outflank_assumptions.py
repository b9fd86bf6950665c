"""Which answers to what the paper leaves open decide γ* of OutFlank routing: one changed at a time, k = 8.

From the definition one answer of the author's simulator is taken; from all of these one is put back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.config.router import PacketConfig
from hopforge.model.output.plots import PALETTE, new_figure, style_axes
from hopforge.model.output.plots import PAPER as PAPER_COLOR
from hopforge.sim.packet.saturation import find_saturation
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, integer
from hopforge.sim.reproduce.tori.outflank import (
    ALGORITHMS,
    ANSWERS,
    PAPER,
    PATTERNS,
    cell_config,
    compare_cell,
    message_count,
    network_config,
    search_rows,
)

_K = 8
#: answers of the author's simulator that differ from the definition's
WORDS = {
    "feed_waits": "the source waits for answers",
    "inject_slots": "5 free slots for packets of the source",
    "congestion": "u counts the adaptive channel only",
    "idle_ratio": "u*/u = 1 where u* = 0",
    "full_profit": "nothing where all queues are full",
    "wraparound": "wraparound keeps its directions",
}
#: points in which both are the same, and what else might be
OPEN: Mapping[str, Mapping[str, Any]] = {
    "queues at the receiving end": {"queues": "receiving"},
    "both ways at half the ring": {"ties": "both"},
    "messages at random times": {"process": "exponential"},
    "every node begins at another bit": {"phase": "random"},
}
FIRST = "the long dimension first: 16×8×8"
#: cells of POR and of OFR in which the definition is not within 0.05; --full: all of both
CELLS = (("butterfly_stages", "por"), ("bit_reverse", "ofr"))
_OTHER_CELLS = tuple(
    (pattern, algorithm)
    for pattern in PATTERNS
    for algorithm in ("por", "ofr")
    if pattern != "transpose" and (pattern, algorithm) not in CELLS
)


def changes(answers: str, pattern: str, algorithm: str) -> dict[str, dict[str, Any]]:
    """Give the experiments of a cell: words → keys of section `packet` that differ from those of `answers`."""
    simulator = {**ANSWERS["simulator"], "wraparound": "directions"}
    found: dict[str, dict[str, Any]] = {"nothing": {}}
    for key, words in WORDS.items():
        if key == "wraparound" and algorithm != "por":
            continue
        if answers == "definition":
            found[f"with: {words}"] = {key: simulator[key]}
        else:
            found[f"without: {words}"] = {key: PacketConfig.model_fields[key].default}
    return found | {
        words: dict(keys) for words, keys in OPEN.items() if pattern == "butterfly_stages" or "phase" not in keys
    }


def _points(options: Options) -> list[Point]:
    def point(answers: str, pattern: str, algorithm: str, change: str) -> Point:
        return {
            "answers": answers,
            "pattern": pattern,
            "algorithm": algorithm,
            "change": change,
            "seed": options.seed,
            "messages": message_count(_K, pattern, options),
        }

    def cells() -> Iterator[Point]:
        for pattern, algorithm in CELLS + (_OTHER_CELLS if options.full else ()):
            for answers in ANSWERS:
                for change in changes(answers, pattern, algorithm):
                    yield point(answers, pattern, algorithm, change)
        for algorithm in ALGORITHMS:
            yield point("simulator", "transpose", algorithm, FIRST)

    return list(cells())


def measure_change(point: Point, _options: Options) -> list[Row]:
    """Find γ* of one cell with one answer changed: a row for each load that was tried."""
    answers, pattern, algorithm, change = (str(point[key]) for key in ("answers", "pattern", "algorithm", "change"))
    messages = integer(point, "messages")
    if change == FIRST:
        config = network_config((16, 8, 8), pattern, algorithm, answers, messages)
    else:
        changed = changes(answers, pattern, algorithm)[change]
        config = cell_config(pattern, algorithm, _K, answers, messages, **changed)
    return search_rows(point, find_saturation(config, integer(point, "seed")))


def _compare(data: pd.DataFrame, _options: Options) -> list[Comparison]:
    result = []
    keys = ["pattern", "algorithm", "answers", "change"]
    for key, part in data.groupby(keys, sort=False):
        pattern, algorithm, answers, change = map(str, key)
        paper = PAPER[_K][pattern][ALGORITHMS.index(algorithm)]
        note = f"answers: {answers}; changed: {change}"
        result.append(compare_cell(part, paper, f"γ*, {PATTERNS[pattern]}, {algorithm.upper()}", note))
    return result


def _draw(data: pd.DataFrame, _options: Options) -> Figure:
    figure, panels = new_figure(panels=len(CELLS), width_in=6.4, height_in=5.6)
    for axes, (pattern, algorithm) in zip(panels, CELLS, strict=True):
        style_axes(axes, title=f"{PATTERNS[pattern]}, {algorithm.upper()}, k = {_K}", x_label="γ*", y_label="")
        cell = data[(data["pattern"] == pattern) & (data["algorithm"] == algorithm)]
        names: list[str] = []
        for j, (answers, part) in enumerate(cell.groupby("answers", sort=True)):
            found = part.groupby("change", sort=False)["saturation"].first()
            places = range(len(names), len(names) + len(found))
            axes.barh(list(places), found.to_numpy(), color=PALETTE[j], height=0.7, label=f"answers of the {answers}")
            names += list(found.index)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        paper = PAPER[_K][pattern][ALGORITHMS.index(algorithm)]
        axes.axvline(paper, color=PAPER_COLOR, linewidth=1, label="paper")
        axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.1), ncols=3, frameon=False, fontsize=9)
    return figure


REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "outflank.assumptions",
        "Largest sustained load with one answer changed",
        "seed 003, table 2; issue 5",
        (
            "k = 8; the answers of the definition or of the author's simulator but for the one named",
            "18 messages (--full: 32) of 96 packets",
        ),
        _points,
        measure_change,
        _compare,
        _draw,
        parallel=True,
    ),
)
