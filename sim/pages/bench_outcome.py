"""What `hopforge bench` measured, in a card for each figure."""

from collections.abc import Iterator

import pandas as pd

from hopforge.sim.pages.report import Fact

__all__ = ["bench_facts", "bench_figure"]

#: column that only this bench has, column of the figure, what it is, unit
_FIGURES = (
    ("booksim_million_flit_hops_per_s", "ratio", "as fast as BookSim", "times"),
    ("against_ns_per_flit_hop", "ratio", "as fast as the other version", "times"),
    ("wall_ratio_median", "wall_ratio_median", "as fast as one thread", "times"),
    ("cost_ratio", "cost_ratio", "time of a flit in a router, beside the first case", "times"),
    ("guard_percent", "guard_percent", "longer with checks", "%"),
    ("engine_ratio", "engine_ratio", "as fast as SimGrid", "times"),
    ("engine_s", "engine_s", "time of the engine", "s"),
    ("packet_s", "packet_s", "time of engine packet", "s"),
    ("million_flit_hops_per_s", "million_flit_hops_per_s", "flits times routers visited, a second", "million"),
    ("cpu_s", "cpu_s", "processor time", "s"),
)


def bench_figure(table: pd.DataFrame) -> tuple[str, str]:
    """Return the column that a bench is about, and what it is; empty words for none that is known."""
    known = ((column, f"{column}: {what}, {unit}.") for only, column, what, unit in _FIGURES
             if only in table and column in table)  # fmt: skip
    return next(known, ("million_per_s", "") if "million_per_s" in table else ("", ""))


def bench_facts(table: pd.DataFrame) -> Iterator[Fact]:
    """Yield the range of each figure of a bench, and which cases have its ends."""
    for only, column, what, unit in _FIGURES:
        if only in table and column in table:
            yield from _range(table, column, what, unit)
    if {"million_per_s", "unit"} <= set(table.columns):
        for name, rows in table.groupby("unit", sort=False):
            yield from _range(rows, "million_per_s", f"{name}s a second", "million")
    elif "million_per_s" in table:
        yield from _range(table, "million_per_s", "messages a second", "million")
    if "same_results" in table:
        compared = table["same_results"].dropna()
        left = f", {len(table) - len(compared)} not compared" if len(compared) < len(table) else ""
        yield Fact("cases with other results", f"{int((~compared.astype(bool)).sum())}", f"of {len(compared)}{left}")


def _range(table: pd.DataFrame, column: str, what: str, unit: str) -> Iterator[Fact]:
    known = table[pd.to_numeric(table[column], errors="coerce").notna()]
    if known.empty:
        return
    values = pd.to_numeric(known[column]).to_numpy()
    low, high = int(values.argmin()), int(values.argmax())
    if low == high:
        alike = f"all {len(known)} cases" if len(known) > 1 else _case(known, low)
        yield Fact(what, f"{values[low]:.3g} {unit}", alike)
    else:
        note = f"{len(known)} cases: {_case(known, low)} to {_case(known, high)}"
        yield Fact(what, f"{values[low]:.3g} to {values[high]:.3g} {unit}", note)


def _case(table: pd.DataFrame, number: int) -> str:
    row = table.iloc[number]
    if "case" in table:
        return str(row["case"])
    known = {"method": "{}", "routers": "{} routers", "degree": "degree {}"}
    return ", ".join(words.format(row[name]) for name, words in known.items() if name in table)
