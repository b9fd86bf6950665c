"""`hopforge app` with failures: a row of `failures` for each failure and repair, on all routers, of all programs."""

import json
from pathlib import Path

import pandas as pd
import pytest

import hopforge
from hopforge.model.config import Config, parse_config
from hopforge.sim.programs.app_result import AppRun
from hopforge.sim.programs.application import app_rows, run_app, write_app

RING = "topology: {kind: torus, radices: [4]}\n"
TIMES = "timing: {link_gbps: 80, switch_base_ns: 0, cable_ns: 0}\n"
FLITS = (
    f"{RING}tables: {{scheme: shortest, layers: acro}}\nrouting: {{algorithm: tables}}\n"
    f"router: {{vcs: 4, buffer_flits: 16}}\ntraffic: {{flit_bytes: 10}}\n{TIMES}"
)
#: a packet of 40 bytes takes 16 cycles of 0.4 ns
QUEUED = (
    f"{RING}routing: {{algorithm: shortest}}\ntraffic: {{flit_bytes: 40}}\n{TIMES}"
    "router: {model: input_output_queued, vcs: 4, buffer_flits: 3, output_buffer_flits: 2, flit_ns: 6.4, "
    "crossbar_ns: 1.6, link_ns: 8, global_ns: 22, host_ns: 1.6, end_ns: 1}\n"
)
PACKETS = (
    "topology: {kind: torus, radices: [4, 4]}\nrouter: {model: packet}\nrouting: {algorithm: abr}\n"
    "packet: {link_gbps: 20.48, link_ns: 200, host_gbps: 40.96, host_ns: 100}\n"
)
#: link 0 - 1 fails before anything is sent over it, and works again long after the program has ended
FAILURE = "simulation: {failures: [{cycle: 0, links: [[0, 1]], detection_cycles: 5, reprogram_cycles: 10%s}]}\n"


def configured(folder: Path, network: str, mtu: int, ranks: int, more: str = "", repair: str = "") -> Config:
    (folder / "program").mkdir(exist_ok=True)
    programs = [["init", f"send 1 0 {6 * mtu}"], ["init", "recv 0 0 -1"], *[["init"]] * (ranks - 2)]
    for rank, lines in enumerate(programs):
        (folder / "program" / f"rank-{rank}.txt").write_text("".join(f"{rank} {line}\n" for line in lines))
    return parse_config(
        f"name: x\n{network}workload: {{kind: trace, file: {folder / 'program'}, mtu_bytes: {mtu}}}\n"
        f"app: {{engine: packet, buffered_bytes: 1000000, eager_bytes: 1000000{more}}}\n{FAILURE % repair}"
    )


def visits(found: AppRun) -> int:
    """Lookups of packets at switches, by their energy."""
    joule = found.energy.set_index("part")["cache_j"]["lookup"]
    assert isinstance(joule, float)
    return round(joule / (found.config.timing.cache_energy_nj * 1e-9))


def ran(config: Config) -> AppRun:
    found = run_app(config)
    assert isinstance(found, AppRun)
    return found


@pytest.mark.parametrize(
    ("network", "mtu", "ranks", "cycle_ns", "flit_cycles", "waits"),
    [(FLITS, 40, 4, 1.0, 1, True), (QUEUED, 40, 4, 0.4, 16, True), (PACKETS, 512, 16, 100.0, 2, False)],
)
def test_what_failed_when_and_what_was_sent_again(
    tmp_path: Path, network: str, mtu: int, ranks: int, cycle_ns: float, flit_cycles: int, waits: bool
) -> None:
    """All 6 packets wait before the link, or their hosts; none is lost, and the program ends."""
    found = ran(configured(tmp_path, network, mtu, ranks))
    assert found.failures is not None
    table = found.failures.table
    assert table["what"].tolist() == ["link 0–1 fails"]
    assert table["cycle"].tolist() == [0] and table["cycle_ns"].tolist() == [pytest.approx(cycle_ns)]
    (new_tables,) = table["reprogrammed_cycle"]
    assert 15 * flit_cycles <= new_tables < found.found.makespan_s * 1e9 / cycle_ns
    assert table[["packets_lost", "packets_unsent", "messages_lost"]].to_numpy().sum() == 0
    aside = table["packets_set_aside"].item() if waits else 0
    assert (1 <= aside <= 6) == waits
    # the way round visits 4 switches; a packet that is set aside has visited the first one before
    assert visits(found) == 6 * 4 + aside
    words = dict(app_rows(found))
    assert any("link 0–1 fails" in text for text in words.values())
    write_app(found, tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "failures.csv")
    pd.testing.assert_frame_equal(written, table.reset_index(drop=True), check_dtype=False)
    columns = json.loads((tmp_path / "out" / "metadata.json").read_text())["columns"]["failures"]
    assert set(columns) == set(table.columns)
    assert columns["reprogrammed_cycle"]["unit"] == "cycles" and columns["cycle_ns"]["unit"] == "ns"
    assert pd.read_parquet(tmp_path / "out" / "failures.parquet").attrs["units"]["cycle_ns"] == "ns"


@pytest.mark.parametrize(
    ("network", "mtu", "cycle", "lost", "aside", "before"),
    [(FLITS, 40, 22, 1, 1, 4), (QUEUED, 40, 4, 1, 3, 2), (PACKETS, 512, 4, 2, 0, 1)],
)
def test_visits_of_lost_packets_count(
    tmp_path: Path, network: str, mtu: int, cycle: int, lost: int, aside: int, before: int
) -> None:
    """Who is lost on the link has visited one switch; who came before 2, who goes round 4, and 5 if set aside."""
    config = configured(tmp_path, network, mtu, 16 if network == PACKETS else 4)
    (tmp_path / "program" / "rank-1.txt").write_text("1 init\n")
    (tmp_path / "program" / "rank-0.txt").write_text(f"0 init\n0 isend 1 0 {6 * mtu}\n")
    failures = tuple(one.model_copy(update={"cycle": cycle}) for one in config.simulation.failures)
    found = ran(config.model_copy(update={"simulation": config.simulation.model_copy(update={"failures": failures})}))
    assert found.failures is not None
    table = found.failures.table
    assert table["packets_lost"].tolist() == [lost]
    assert network == PACKETS or table["packets_set_aside"].tolist() == [aside]
    assert visits(found) == lost + 2 * before + 5 * aside + 4 * (6 - lost - before - aside)


def test_a_repair_that_takes_place_and_one_that_does_not(tmp_path: Path) -> None:
    """The 24 flits go after cycle 15 and arrive before cycle 60, in which the repair would be; or it is at once."""
    soon = ran(configured(tmp_path, FLITS, 40, 4, repair=", repair_cycles: 20"))
    late = ran(configured(tmp_path, FLITS, 40, 4, repair=", repair_cycles: 20000"))
    assert soon.failures is not None and late.failures is not None
    assert soon.failures.table["what"].tolist()[1:] == ["link 0–1 works again"]
    assert len(late.failures.table) == 1
    assert late.failures.rows[-1] == ("cycle 20,000", "not reached: link 0–1 works again")


def test_without_failures_there_is_no_table(tmp_path: Path) -> None:
    config = configured(tmp_path, FLITS, 40, 4)
    whole = config.model_copy(update={"simulation": config.simulation.model_copy(update={"failures": ()})})
    found = ran(whole)
    write_app(found, tmp_path / "out")
    assert found.failures is None and not (tmp_path / "out" / "failures.csv").exists()


def test_the_result_in_python_has_the_table(tmp_path: Path) -> None:
    configured(tmp_path, FLITS, 40, 4)  # writes the program
    (tmp_path / "a.yml").write_text(
        f"name: x\n{FLITS}workload: {{kind: trace, file: {tmp_path / 'program'}, mtu_bytes: 40}}\n"
        f"app: {{engine: packet}}\n{FAILURE % ''}"
    )
    result = hopforge.app(tmp_path / "a.yml", progress=False)
    assert result.tables["failures"]["cycle"].tolist() == [0]


@pytest.mark.parametrize("network", [FLITS, QUEUED])
def test_schedules_and_jobs_have_it_too(tmp_path: Path, network: str) -> None:
    (tmp_path / "pair.goal").write_text(
        "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 40b to 1\nb requires a\n}\nrank 1 {\nrecv 40b from 0\n}\n"
    )
    pair = f"kind: trace, file: {tmp_path / 'pair.goal'}, mtu_bytes: 40"
    app = "app: {engine: packet, loggops: {o: 0, g: 0, O: 0, S: 1000000000, unit_ns: 1}}\n" + FAILURE % ""
    alone = ran(parse_config(f"name: x\n{network}workload: {{{pair}}}\n{app}"))
    jobs = "".join(f"    - {{program: {{{pair}, mapping: {{first: {first}}}}}}}\n" for first in (0, 2))
    both = ran(parse_config(f"name: x\n{network}workload:\n  kind: jobs\n  jobs:\n{jobs}{app}"))
    for found in (alone, both):
        assert found.failures is not None
        assert found.failures.table["what"].tolist() == ["link 0–1 fails"]
        assert found.failures.table["messages_lost"].tolist() == [0]
