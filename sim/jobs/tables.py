"""What `hopforge jobs` tells people."""

import math

from hopforge.model.workload.jobs import REASONS
from hopforge.sim.jobs.prepared import JobsReport

__all__ = ["schedule_lines", "summary_rows"]

_WORDS = {
    "partial": "parts of jobs", "size": "without a size", "run": "without a run time",
    "submit": "without a submit time", "large": "larger than the machine",
}  # fmt: skip


def summary_rows(found: JobsReport) -> list[tuple[str, str]]:
    """Return (subject, words) of a run."""
    setup = found.setup
    log, machine, jobs = setup.log, setup.machine, setup.jobs
    shape = "x".join(map(str, machine.dims))
    skipped = [f"{jobs.skipped[reason]} {_WORDS[reason]}" for reason in REASONS if reason in jobs.skipped]
    each = "processor" if machine.ppn == 1 else "processors"
    rows = [
        ("log", f"{log.name}: {len(log.records)} lines, {len(jobs)} jobs"),
        ("machine", f"{shape} nodes of {machine.ppn} {each}{' (header)' if machine.from_header else ''}"),
        ("times", "in seconds; slowdown: bounded, runs below 10 s count as 10 s"),
    ]
    if skipped:
        rows.insert(1, ("skipped", ", ".join(skipped)))
    if "interference" in found.tables:
        table = found.tables["interference"]
        words = "no job took any time"
        if len(table["job"]):
            words = f"{len(table['job'])} jobs at the busiest instants, slowdown at the bottleneck at most "
            words += f"{table['slowdown'].max():.4g}"
        rows.append(("interference", words))
    return rows


def schedule_lines(found: JobsReport) -> list[list[str]]:
    """Return headings and a row for each scheduler and placement."""
    table = found.tables["schedules"]
    forms = {
        "mean_wait": ".1f", "longest_wait": ".0f", "mean_bounded_slowdown": ".2f", "makespan": ".0f",
        "utilisation": ".3f",
    }  # fmt: skip
    lines = [["scheduler", "placement", "mean wait", "longest", "slowdown", "makespan", "utilisation"]]
    for row in range(len(table["scheduler"])):
        names = [str(table[key][row]) for key in ("scheduler", "placement")]
        figures = ((float(table[key][row]), form) for key, form in forms.items())
        lines.append([*names, *("–" if math.isnan(figure) else format(figure, form) for figure, form in figures)])
    return lines
