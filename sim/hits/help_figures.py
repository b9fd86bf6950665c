"""What follows from prefetch and refill: rates, times and energy with the extra look-ups and reads, and words.

Definition: docs/definitions/prefetch.md.
"""

from typing import Any

import numpy as np
import pandas as pd

from hopforge.model.config.root import TimingConfig

__all__ = ["add_help_figures", "help_rows"]


def add_help_figures(table: pd.DataFrame, timing: TimingConfig, tcam_cycles: int) -> None:
    """Replace what `add_figures` found by what the extra look-ups and TCAM reads cost, and append what they bring.

    Without a time of the TCAM every miss waits for all of it; otherwise for the cycles that it waited.
    """
    lookups = table["lookups"].where(table["lookups"] > 0).astype(float)
    asked, read = (table["lookups"] + table["issued"]) / lookups, table["reads"] / lookups
    waited = table["waited_cycles"] / tcam_cycles if tcam_cycles else table["misses"]
    table["tcam_lookups"] = table["reads"]
    table["lookup_ns"] = timing.cache_ns + timing.tcam_ns * waited / lookups
    table["forwarding_mpps"] = 1e3 / np.maximum(timing.cache_ns * asked, timing.tcam_ns * read)
    table["forwarding_gbps"] = table["forwarding_mpps"] * timing.slot_bytes * 8e-3
    table["energy_nj_per_lookup"] = timing.cache_energy_nj * asked + timing.tcam_energy_nj * read
    for name, other in (("accuracy", "fills"), ("coverage", "misses"), ("timeliness", "late")):
        whole = table[other] if name == "accuracy" else table["useful"] + table[other]
        table[name] = table["useful"] / whole.where(whole > 0).astype(float)


def help_rows(totals: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what helped, for people."""
    t = totals

    def share(name: str) -> str:
        return "–" if np.isnan(t[name]) else f"{100 * t[name]:.3g} %"

    rows = []
    if t["empty_packets"]:
        extra = 100 * t["empty_packets"] / max(t["packets"], 1)
        rows.append(("empty packets", f"{t['empty_packets']:,} ({extra:.3g} % more packets)"))
    rows += [
        (
            "prefetched",
            f"{t['fills']:,} lines of {t['issued']:,} asked for: {t['useful']:,} useful, {t['unused']:,} unused,"
            f" {t['harmful']:,} harmful, {t['late']:,} late",
        ),
        ("of these", f"accuracy {share('accuracy')}, coverage {share('coverage')}, timeliness {share('timeliness')}"),
        ("TCAM reads", f"{t['reads']:,}"),
    ]
    if t["ejected"]:
        rows.append(("ejected", f"{t['ejected']:,} lines"))
    return rows
