"""Caches before a table of rules, beside the TCAM alone: what `hopforge rules` runs and writes.

Definition: docs/definitions/rule-caches.md.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hopforge.model.lookup.rules.address_words import as_addresses, as_numbers
from hopforge.model.lookup.rules.cube_cache import CubeCache, CubeSettings
from hopforge.model.lookup.rules.cube_kernel import KERNEL_POLICIES, PrefixRules, run_prefixes
from hopforge.model.lookup.rules.cube_policies import CUBE_POLICIES
from hopforge.model.lookup.rules.cube_sets import default_index_bits
from hopforge.model.lookup.rules.dependency_cache import DependencyCache, DependencySettings
from hopforge.model.lookup.rules.rule_files import RuleFile, read_rules
from hopforge.model.lookup.rules.rule_table import RuleTable
from hopforge.model.lookup.rules.static_choice import choose, static_hits
from hopforge.model.output.plots import Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.hits.analytic import forwarding_rate
from hopforge.sim.hits.rule_settings import STATIC, RuleCacheError, RuleSettings
from hopforge.sim.hits.rule_traffic import RuleTraffic, draw_traffic

__all__ = ["RuleCaches"]

Progress = Callable[[int, int], None]

class _Case(NamedTuple):
    zipf: float
    policy: str
    size: int

class RuleCaches:
    """A run of rule caches: prepared, then run, then shown and written.

    Parameters
    ----------
    path : Path
        Of the table.
    settings : RuleSettings
        What is run.
    hops : int, optional
        Next hops that there are (`read_rules`).

    Raises
    ------
    RuleFileError, RuleCacheError
        The file or a setting is no good.
    """

    unit = "caches"

    def __init__(self, path: Path, settings: RuleSettings, hops: int | None = None) -> None:
        settings.check()
        self.path, self.settings = path, settings
        self.file: RuleFile = read_rules(path, hops)
        if settings.index_bits is not None and settings.index_bits > self.file.width:
            raise RuleCacheError(
                f"--index-bits: must be at most the {self.file.width} bits of an address, not {settings.index_bits}"
            )
        self.is_prefix = self._table().is_prefix_table
        self.policies = settings.chosen(len(self.file.rules), is_prefix=self.is_prefix)
        self.caches = pd.DataFrame()
        self.lengths = pd.DataFrame()

    def _table(self) -> RuleTable:
        return RuleTable(self.file.rules, self.file.width)

    def run(self, progress: Progress) -> None:
        """Run every policy and size on the same lookups.

        Raises
        ------
        RuntimeError
            A cache that is correct gave an answer that was not the TCAM's: an error of ours.
        """
        s, rows = self.settings, []
        total = len(s.zipfs) * len(self.policies) * len(s.sizes)
        for zipf in s.zipfs:
            traffic = self._traffic(zipf)
            if self.lengths.empty:
                self.lengths = self._lengths(traffic)
            rows.append(self._row(_Case(zipf, "tcam", 0), {"lookups": s.lookups, "hits": 0, "wrong": 0}))
            weights: Counter[int] = Counter()
            if not STATIC.keys().isdisjoint(self.policies):
                weights = self._weights(traffic)
            for policy in self.policies:
                for size in s.sizes:
                    case = _Case(zipf, policy, size)
                    rows.append(self._row(case, self._counts(case, traffic, weights)))
                    progress(sum(row["entries"] > 0 for row in rows), total)
        self.caches = pd.DataFrame(rows)

    def _traffic(self, zipf: float) -> RuleTraffic:
        s = self.settings
        return draw_traffic(
            self.file.rules, self.file.width, len(self.file.hops), lookups=s.lookups, updates=s.updates,
            flows=s.flows, zipf=zipf, rng=np.random.default_rng(s.seed),
        )  # fmt: skip

    def _weights(self, traffic: RuleTraffic) -> Counter[int]:
        """Return the lookups that each rule of the first table answers."""
        table, weights = self._table(), Counter[int]()
        for address, count in traffic.counted():
            rule = table.match(address)
            if rule is not None:
                weights[rule.id] += count
        return weights

    def _counts(self, case: _Case, traffic: RuleTraffic, weights: Counter[int]) -> dict[str, int]:
        s = self.settings
        if case.policy in STATIC:
            table = self._table()
            choice = choose(table, weights, case.size, STATIC[case.policy])
            hits = static_hits(table, choice, as_numbers(traffic.addresses, self.file.width))
            entries = len(choice.real) + len(choice.cover)
            return {"lookups": s.lookups, "hits": hits, "wrong": 0, "peak": entries}
        if case.policy not in CUBE_POLICIES:
            kept = DependencySettings(
                case.policy, case.size, s.invalidation, not (s.overlap_graph and case.policy == "cover")
            )
            found = DependencyCache(self._table(), kept).run(traffic.events())
            return self._right(case, found._asdict(), is_correct=True)
        cubes = CubeSettings(case.policy, case.size, s.invalidation, s.fill, s.guard, s.ways, s.index_bits)
        if self.is_prefix and case.policy in KERNEL_POLICIES and self._are_distinct:
            counts = run_prefixes(self._prefixes(), traffic.prefix_events(), cubes)
        else:
            counts = CubeCache(self._table(), cubes).run(traffic.events())
        return self._right(case, counts._asdict(), is_correct=cubes.is_correct)

    @property
    def _are_distinct(self) -> bool:
        return len({(rule.value, rule.mask) for rule in self.file.rules}) == len(self.file.rules)

    def _right(self, case: _Case, counts: dict[str, int], *, is_correct: bool) -> dict[str, int]:
        if is_correct and counts["wrong"]:
            raise RuntimeError(
                f"policy {case.policy} with {case.size} entries gave {counts['wrong']} answers unlike the TCAM's"
            )
        return counts

    def _prefixes(self) -> PrefixRules:
        rules = self.file.rules
        values = as_addresses([rule.value for rule in rules], self.file.width)
        lengths, outs = np.array([rule.priority for rule in rules]), np.array([rule.out for rule in rules], np.int32)
        return PrefixRules(values, lengths, outs, self.file.width)

    def _row(self, case: _Case, counts: dict[str, int]) -> dict[str, Any]:
        lookups, hits = counts["lookups"], counts["hits"]
        rate = forwarding_rate(miss_ratio=1 - hits / lookups, cached=case.policy != "tcam")
        updates = 0 if case.policy in STATIC else self.settings.updates
        dropped = {name: counts.get(name, 0) for name in ("evicted", "absorbed", "invalidated", "dropped")}
        return {
            "policy": case.policy, "zipf": case.zipf, "entries": case.size, "lookups": lookups, "hits": hits,
            "hit_rate": hits / lookups, "wrong": counts["wrong"], "updates": updates,
            "tcam_reads": lookups - hits, "punts": counts.get("punts", 0),
            "fills": counts.get("fills", counts.get("installs", 0)), **dropped,
            "uncacheable": counts.get("uncacheable", 0), "peak": counts.get("peak", 0),
            "forwarding_mpps": rate / 1e6,
            "updates_per_second": np.nan if counts["wrong"] else updates * rate / lookups,
        }  # fmt: skip

    def _lengths(self, traffic: RuleTraffic) -> pd.DataFrame:
        """Return how many rules have each number of bits that matter, and how many lookups start in them."""
        bits = Counter(rule.mask.bit_count() for rule in self.file.rules)
        weights, found = self._weights(traffic), Counter[int]()
        for rule in self.file.rules:
            found[rule.mask.bit_count()] += weights[rule.id]
        return pd.DataFrame([{"bits": n, "rules": bits[n], "lookups": found[n]} for n in sorted(bits)])

    def values(self) -> dict[str, Any]:
        """Return figures of the table and the largest number of wrong answers."""
        return {
            "rules": len(self.file.rules), "width_bits": self.file.width, "next_hops": len(self.file.hops),
            "prefixes": self.is_prefix, "wrong": int(self.caches["wrong"].sum()),
        }  # fmt: skip

    def rows(self) -> list[tuple[str, str]]:
        """Say what the table is, what ran, and whether an answer was wrong."""
        s, values = self.settings, self.values()
        kind = "prefixes" if self.is_prefix else "ternary rules"
        wrong = f"{values['wrong']:,} answers of caches were not the TCAM's" if values["wrong"] else "0 answers"
        return [
            ("table", f"{len(self.file.rules):,} {kind} of {self.file.width} bits, {len(self.file.hops)} next hops"),
            ("traffic", f"{s.lookups:,} lookups of {s.flows:,} flows, {s.updates:,} updates, seed {s.seed}"),
            *([] if s.ways is None else [("sets", f"of {s.ways} entries, {self._hashed()}")]),
            ("wrong", wrong),
        ]

    def _hashed(self) -> str:
        """Say which bits choose the set."""
        s, width = self.settings, self.file.width
        bits = {name: s.index_bits or default_index_bits(name, width) for name in self.policies}
        if len(set(bits.values())) == 1:
            return f"by a hash of the highest {next(iter(bits.values()))} bits"
        return "by a hash of the highest bits: " + ", ".join(f"{name} {count}" for name, count in bits.items())

    def lines(self) -> list[list[str]]:
        """Return headings and a line for every cache."""
        found = [["policy", "zipf", "entries", "hit rate", "wrong", "TCAM reads", "forwarding, Mpps"]]
        for row in self.caches.to_dict("records"):
            found.append([
                row["policy"], f"{row['zipf']:g}", f"{row['entries']:,}", f"{100 * row['hit_rate']:.2f} %",
                f"{row['wrong']:,}", f"{row['tcam_reads']:,}", f"{row['forwarding_mpps']:.1f}",
            ])  # fmt: skip
        return found

    def write(self, folder: Path, *, plots: bool = True) -> None:
        """Write tables, plot and metadata, all or nothing."""
        with staged(folder) as scratch:
            write_tables(scratch, {"rule_caches": self.caches, "lengths": self.lengths})
            write_metadata(scratch, {"table": str(self.path), **run_metadata(self.settings), "totals": self.values()})
            if plots:
                self._draw(scratch / "hit_rate.png")

    def _draw(self, part: Path) -> None:
        zipfs = self.settings.zipfs
        figure, panels = new_figure(panels=len(zipfs), columns=min(len(zipfs), 3))
        for zipf, axes in zip(zipfs, panels, strict=True):
            here = self.caches[(self.caches["zipf"] == zipf) & (self.caches["policy"] != "tcam")]
            style_axes(
                axes, title=f"{self.path.stem}, Zipf {zipf:g}", x_label="entries", y_label="hit rate, %", log_x=True
            )  # fmt: skip
            lines = []
            for number, policy in enumerate(self.policies):
                row = here[here["policy"] == policy].sort_values("entries")
                lines.append(Line(policy, row["entries"].to_numpy(), 100 * row["hit_rate"].to_numpy(), number))
            draw_lines(axes, lines)
        save_figure(figure, part)
