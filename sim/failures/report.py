"""What failures did to a run: rows for the terminal, and tables."""

from typing import TYPE_CHECKING

from hopforge.sim.failures.reconfiguration import Reconfiguration
from hopforge.sim.failures.record import FailureRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["failure_rows", "failure_tables"]


def failure_tables(failures: Reconfiguration) -> "dict[str, pd.DataFrame]":
    """Tables `failures` (a row per failure or repair that took place) and `series` (a row per bin)."""
    return {"failures": failures.table(), "series": failures.series}


def failure_rows(failures: Reconfiguration) -> list[tuple[str, str]]:
    """Subject and words for the terminal: one row for each failure and repair."""
    rows = [(_moment(failures, record.cycle), _words(failures, record)) for record in failures.records]
    rows += [(_moment(failures, epoch.cycle), f"not reached: {epoch.what}") for epoch in failures.to_come]
    return rows


def _moment(failures: Reconfiguration, cycle: int) -> str:
    """Say a moment of the run: in µs where the file does not count cycles of the simulator."""
    return f"cycle {cycle:,}" if failures.flit_cycles == 1 else f"{cycle * failures.cycle_ns / 1000:.6g} µs"


def _words(failures: Reconfiguration, record: FailureRecord) -> str:
    words = [record.what]
    if record.packets_lost:
        words.append(
            f"{record.packets_lost} packets lost ({record.flits_on_links} flits on links, "
            f"{record.flits_in_switches} in switches, {record.flits_of_cut_packets} others of the same packets)"
        )
    for count, what in (
        (record.packets_unsent, "packets abandoned at their hosts"),
        (record.packets_set_aside, "packets sent again by hosts on the way"),
        (record.packets_without_host, "packets dropped at switches without hosts"),
        (record.acknowledges_lost, "acknowledges lost"),
        (record.messages_lost, "messages lost"),
    ):
        if count:
            words.append(f"{count} {what}")
    if record.reprogrammed_cycle >= 0:
        empty, ready = (_moment(failures, cycle) for cycle in (record.empty_cycle, record.reprogrammed_cycle))
        words.append(
            f"empty in {empty}, new tables in {ready}"
            if failures.flit_cycles == 1
            else f"empty at {empty}, new tables at {ready}"
        )
    else:
        words.append("the run ended before the new tables")
    return "; ".join(words)
