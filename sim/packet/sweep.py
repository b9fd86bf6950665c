"""The sweep of the packet routers (``router.model: packet``): curves of lifetimes and detours over the load."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hopforge.model.config import Config
from hopforge.model.config.uses import USES
from hopforge.model.output.plots import PALETTE, Line, draw_lines, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.prepared import prepare_jobs
from hopforge.sim.packet.saturation import LIFETIME_LIMIT
from hopforge.sim.packet.simulation import run_packets
from hopforge.sim.run.jobs import Job
from hopforge.sim.run.kept_results import Row
from hopforge.sim.run.knee import Knee
from hopforge.sim.run.rate_time import rate_units
from hopforge.sim.run.sweep import Sweep, curve_knees

_MEANS = [
    "lifetime_ns", "lifetime_median_ns", "lifetime_p95_ns", "lifetime_p99_ns", "accepted", "hops", "outflanked",
    "wrapped", "refused", "link_load",
]  # fmt: skip


class PacketSweep(Sweep):
    """Variants × loads × seeds of messages on a torus or mesh."""

    def unused(self, config: Config) -> set[str]:
        """Sections about flits, tables and programs."""
        return {"workload", "timing", "energy", "app", "tables", "lookup"} - USES["sweep"](config)

    def run_one(self, job: Job) -> Row:
        """Simulate one load and seed; freedom from deadlock has been proved before."""
        return run_packets(PacketNetwork(job.config, job.load, job.seed, check=False)).row()

    def prepare(self, missing: Sequence[Job]) -> None:
        """Prepare the first run of every variant: mistakes, and the proof of deadlock freedom."""
        prepare_jobs(missing)

    def summarise(self, runs: pd.DataFrame) -> pd.DataFrame:
        """One row per variant and load: means over the seeds, and whether the load is sustained.

        Sustained: all packets arrived, and the mean lifetime is at most `LIFETIME_LIMIT` times that at the lowest load.
        """
        curve = runs.groupby(["variant", "load"], sort=False)[_MEANS].mean().reset_index()
        complete = runs.groupby(["variant", "load"], sort=False)["complete"].all().to_numpy()
        lowest = curve.sort_values("load").groupby("variant")["lifetime_ns"].first()
        within = curve["lifetime_ns"] <= LIFETIME_LIMIT * curve["variant"].map(lowest)
        curve.insert(2, "sustained", complete & within.to_numpy())
        return curve

    def knees(self, runs: pd.DataFrame) -> dict[str, Knee]:
        """Saturated: a load that is not sustained."""
        curve = self.summarise(runs)
        return curve_knees(curve, ~curve["sustained"])

    def write(self, config: Config, runs: pd.DataFrame, folder: Path) -> None:
        """Write runs and curve (CSV, Parquet), plot (PNG) and metadata (JSON)."""
        curve = self.summarise(runs)
        with staged(folder) as scratch:
            write_tables(scratch, {"runs": runs, "curve": curve}, rate_units(config))
            _plot(config.name, curve, scratch / "latency_load.png")
            write_metadata(scratch, run_metadata(config))

    def table(self, config: Config, runs: pd.DataFrame) -> list[list[str]]:
        """Headings, and a row per variant and load."""
        rows = [["variant", "load", "lifetime", "99 %", "accepted", "routers visited", "outflank", "wraparound"]]
        for row in self.summarise(runs).itertuples():
            lifetime = f"{row.lifetime_ns:.0f} ns" if row.sustained else "saturated"
            rows.append([
                str(row.variant), f"{row.load:.4g}", lifetime, f"{row.lifetime_p99_ns:.0f} ns", f"{row.accepted:.4f}",
                f"{row.hops:.3f}", f"{row.outflanked:.2%}", f"{row.wrapped:.2%}",
            ])  # fmt: skip
        return rows


PACKET_SWEEP = PacketSweep()


def _plot(name: str, curve: pd.DataFrame, path: Path) -> None:
    """Draw lifetime (while sustained), throughput and detours over the load, a line per variant."""
    figure, (left, middle, right) = new_figure(panels=3, width_in=5.6)
    load = "load (1: uniform traffic saturates the bisection of a torus)"
    style_axes(left, title=f"Lifetime while sustained, {name}", x_label=load, y_label="mean lifetime (µs)")
    style_axes(middle, title="Throughput until the last packet has arrived", x_label=load, y_label="accepted")
    style_axes(right, title="Detours", x_label=load, y_label="share of packets")
    lifetimes, accepted, detours = [], [], []
    for k, (variant, points) in enumerate(curve.groupby("variant", sort=False)):
        dashed, sustained = k >= len(PALETTE), points[points["sustained"]]
        label = str(variant) if len(sustained) else f"{variant}: saturated"
        lifetimes.append(Line(label, sustained["load"], sustained["lifetime_ns"] / 1000, k, dashed=dashed))
        accepted.append(Line(str(variant), points["load"], points["accepted"], k, dashed=dashed))
        detours.append(Line(str(variant), points["load"], points["outflanked"] + points["wrapped"], k, dashed=dashed))
    for axes, lines in ((left, lifetimes), (middle, accepted), (right, detours)):
        draw_lines(axes, lines)
    save_figure(figure, path)
