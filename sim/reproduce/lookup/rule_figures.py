"""Caches before rules of longest prefix (seed 004, 7.2.2, future work without figures): entries, mix, Zipf, updates."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hopforge.model.lookup.rules.cube_cache import CubeSettings
from hopforge.model.lookup.rules.cube_kernel import PrefixRules, run_prefixes
from hopforge.model.lookup.rules.cubes import prefix_mask
from hopforge.model.lookup.rules.rule_table import Rule
from hopforge.model.output.plots import Line, draw_lines, new_figure, style_axes
from hopforge.sim.hits.analytic import forwarding_rate
from hopforge.sim.hits.rule_traffic import draw_traffic
from hopforge.sim.reproduce.registry import Comparison, Options, Point, Reproduction, Row, Value, integer, number

POLICIES = ("exact", "host", "mep")
MIXES = {
    "all /24": {24: 1.0},
    "/8 to /24": {8: 0.01, 12: 0.04, 16: 0.15, 20: 0.2, 24: 0.6},
    "/8 to /24, half inside another": {8: 0.01, 12: 0.04, 16: 0.15, 20: 0.2, 24: 0.6},
}
_NESTED = "/8 to /24, half inside another"
USUAL: Point = {"mix": _NESTED, "entries": 1024, "zipf": 1.0, "updates": 1000, "invalidation": "overlap"}
_RULES, _WIDTH, _HOPS, _FLOWS = 16_384, 32, 16, 65_536


def _table(mix: str, seed: int) -> list[Rule]:
    """Draw a default route and prefixes of a mix of lengths; of the nested mix every second one lies in another."""
    rng = np.random.default_rng([seed, 3])
    weights = MIXES[mix]
    lengths = rng.choice(list(weights), _RULES * 2, p=list(weights.values()))
    known: dict[tuple[int, int], None] = {(0, 0): None}
    shorter: list[tuple[int, int]] = []
    for place, length in enumerate(sorted(lengths.tolist())):
        value = int(rng.integers(1 << 32))
        if mix == _NESTED and place % 2 and shorter:
            parent, bits = shorter[int(rng.integers(len(shorter)))]
            if bits < length:
                value = parent | value & ((1 << (32 - bits)) - 1)
        found = value & prefix_mask(length, _WIDTH), length
        known[found] = None
        shorter.append(found)
    chosen = list(known)[1:]
    kept = [(0, 0), *(chosen[place] for place in sorted(rng.permutation(len(chosen))[: _RULES - 1].tolist()))]
    outs = rng.integers(0, _HOPS, len(kept)).tolist()
    return [
        Rule(number, value, prefix_mask(length, _WIDTH), length, out)
        for number, ((value, length), out) in enumerate(zip(kept, outs, strict=True))
    ]


def measure(point: Point, options: Options) -> list[Row]:
    """Measure every policy at a point: `USUAL` with other values; with ``ways`` and ``index_bits`` in sets."""
    rules = _table(str(point["mix"]), options.seed)
    lookups = 1_000_000 if options.full else 200_000
    traffic = draw_traffic(
        rules, _WIDTH, _HOPS, lookups=lookups, updates=integer(point, "updates"), flows=_FLOWS,
        zipf=number(point, "zipf"), rng=np.random.default_rng(options.seed),
    )  # fmt: skip
    values, lengths, outs = np.array([(rule.value, rule.priority, rule.out) for rule in rules], np.int64).T.copy()
    table = PrefixRules(values, lengths, outs.astype(np.int32), _WIDTH)
    rows: list[Row] = []
    for policy in POLICIES:
        ways, index_bits = (integer(point, key) if key in point else None for key in ("ways", "index_bits"))
        settings = CubeSettings(
            policy, integer(point, "entries"), str(point["invalidation"]), ways=ways, index_bits=index_bits
        )
        counts = run_prefixes(table, traffic.prefix_events(), settings)
        assert counts.wrong == 0, "a hit was not the TCAM's answer"
        miss = 1 - counts.hits / counts.lookups
        rows.append({
            **point, "policy": policy, "lookups": counts.lookups, "hit_percent": 100 * (1 - miss),
            "invalidated": counts.invalidated, "forwarding_mpps": forwarding_rate(miss_ratio=miss) / 1e6,
        })  # fmt: skip
    return rows


def _points(key: str, values: Sequence[Value], **changed: Sequence[Value]) -> Callable[[Options], list[Point]]:
    (other, others), = changed.items() if changed else [("invalidation", ["overlap"])]
    return lambda options: [{**USUAL, key: value, other: one} for one in others for value in values]


def _compare(key: str, others: str = "") -> Callable[[pd.DataFrame, Options], list[Comparison]]:
    def compare(data: pd.DataFrame, options: Options) -> list[Comparison]:
        found = []
        for row in data.to_dict("records"):
            where = f"{key} {row[key]:,}" if isinstance(row[key], int) else f"{key} {row[key]}"
            if others:
                where += f", {row[others]}"
            alone = forwarding_rate(miss_ratio=1, cached=False) / 1e6
            note = f"{row['forwarding_mpps']:.0f} Mpps; the TCAM alone {alone:.0f}"
            quantity = f"hit rate, {where}, {row['policy']}"
            found.append(Comparison(quantity, "%", None, float(row["hit_percent"]), note))
        return found

    return compare


def _draw(key: str, label: str, others: str = "", log_x: bool = False) -> Callable[[pd.DataFrame, Options], Figure]:
    def draw(data: pd.DataFrame, options: Options) -> Figure:
        figure, (axes,) = new_figure(width_in=8.0)
        order = list(dict.fromkeys(data[key]))
        named = isinstance(order[0], str)
        style_axes(axes, title="Caches before 16,384 prefixes", x_label=label, y_label="hit rate, %", log_x=log_x)
        lines = []
        for color, policy in enumerate(POLICIES):
            of_policy = data[data["policy"] == policy]
            for number_, one in enumerate(dict.fromkeys(of_policy[others]) if others else [None]):
                part = of_policy if one is None else of_policy[of_policy[others] == one]
                x = np.arange(len(part)) if named else part[key]
                name = policy if one is None else f"{policy}, {one}"
                lines.append(Line(name, x, part["hit_percent"], color, dashed=bool(number_)))
        draw_lines(axes, lines)
        if named:
            axes.set_xticks(range(len(order)), labels=order)
        return figure

    return draw


ASSUMED = (
    "16,384 drawn prefixes of 32 bits, 16 next hops; 65,536 flows of Zipf's law, each in a prefix drawn uniformly",
    "fully associative LRU caches; 200,000 lookups, 1,000,000 with --full; every hit is compared with the TCAM",
    "policies and invalidation: docs/definitions/rule-caches.md; 1 ns a hit, 25 ns a TCAM read",
)
_SOURCE = "seed 004, 7.2.2 (future work), which has no figure"

REPRODUCTIONS: Sequence[Reproduction] = (
    Reproduction(
        "rules.entries", "Hit rate of caches before prefixes against entries", _SOURCE, ASSUMED,
        _points("entries", (64, 256, 1024, 4096, 16384)), measure, _compare("entries"),
        _draw("entries", "entries", log_x=True),
    ),
    Reproduction(
        "rules.mix", "The same against the mix of prefix lengths", _SOURCE, ASSUMED,
        _points("mix", tuple(MIXES)), measure, _compare("mix"), _draw("mix", "mix of lengths"),
    ),
    Reproduction(
        "rules.zipf", "The same against the exponent of Zipf's law", _SOURCE, ASSUMED,
        _points("zipf", (0.6, 0.8, 1.0, 1.2, 1.4)), measure, _compare("zipf"), _draw("zipf", "exponent"),
    ),
    Reproduction(
        "rules.updates", "The same against updates of rules, by invalidation", _SOURCE, ASSUMED,
        _points("updates", (10, 100, 1000, 10_000), invalidation=("overlap", "flush")), measure,
        _compare("updates", "invalidation"), _draw("updates", "updates", "invalidation", log_x=True),
    ),
)  # fmt: skip
