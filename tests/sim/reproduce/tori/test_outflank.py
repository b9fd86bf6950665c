"""Reproduction of OutFlank routing: cells on small networks, comparison by hand, points in several processes."""

import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.output.plots import new_figure
from hopforge.sim.packet.network import PacketNetwork
from hopforge.sim.packet.simulation import run_packets
from hopforge.sim.reproduce import REPRODUCTIONS, Comparison, Options, Reproduction, run_reproduction
from hopforge.sim.reproduce.tori import outflank, outflank_assumptions, outflank_eta, outflank_mesh
from hopforge.sim.run import kept_results


def small(pattern: str, algorithm: str, k: int, answers: str, messages: int, **_changes: object) -> Config:
    return parse_config(
        f"name: small\ntopology: {{kind: torus, radices: [4, 4]}}\nrouter: {{model: packet}}\n"
        f"routing: {{algorithm: {algorithm}}}\ntraffic: {{pattern: {pattern}, message_packets: 24}}\n"
        f"packet: {{messages: {messages}}}\n"
    )


def test_networks_of_the_cells() -> None:
    # 16×8×8 nodes, the long dimension last as in the author's simulator
    for answers in outflank.ANSWERS:
        radices = outflank.cell_config("transpose", "ofr", 8, answers, 18).topology.radices  # type: ignore[union-attr]
        assert radices == (8, 8, 16)
    config = outflank.cell_config("uniform", "por", 16, "simulator", 12)
    assert config.topology.radices == (16, 16, 16)  # type: ignore[union-attr]
    assert (config.packet.feed_waits, config.packet.inject_slots, config.traffic.message_packets) == (True, 5, 96)
    assert [outflank.cell_config("uniform", a, 8, "simulator", 18).packet.wraparound for a in outflank.ALGORITHMS] == [
        "middle", "directions", "middle",
    ]  # fmt: skip
    cells = [(p["pattern"], p["algorithm"], p["answers"], p["seed"]) for p in outflank._small_cells(Options())]
    assert len(cells) == len(set(cells)) == 2 * 15
    assert len(outflank._small_cells(Options(full=True))) == 2 * (15 + 2 * 3)  # uniform traffic with three seeds
    large = outflank._large_cells(Options(full=True))
    assert {(p["pattern"], p["algorithm"]) for p in large} == {cell[:2] for cell in cells}
    assert {(p["k"], p["answers"]) for p in large} == {(16, "simulator")}
    assert {p["pattern"] for p in outflank._large_cells(Options())} == {"transpose3d"}


def test_a_cell_is_what_the_search_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outflank, "cell_config", small)
    point = {"answers": "definition", "k": 8, "pattern": "tornado", "algorithm": "ofr", "seed": 1, "messages": 6}
    rows = pd.DataFrame(outflank.measure_cell(point, Options()))
    assert rows["load"].is_monotonic_increasing
    sustained = rows[rows["sustained"]]
    assert sustained["load"].max() == rows["saturation"].iloc[0]
    assert (rows[~rows["sustained"]]["load"] > sustained["load"].max()).all()
    assert (~rows["sustained"]).any()
    network = PacketNetwork(small("tornado", "ofr", 8, "definition", 6), float(sustained["load"].max()), 1)
    assert run_packets(network).lifetime_ns == sustained["lifetime_ns"].iloc[-1]
    assert sustained["lifetime_ns"].iloc[-1] <= 1.2 * rows["lifetime_ns"].iloc[0]
    shares = outflank.measure_shares(
        {"pattern": "tornado", "algorithm": "por", "k": 8, "load": 1.0, "seed": 1, "messages": 6}, Options()
    )
    assert 0 < float(shares[0]["wrapped"]) < 1  # type: ignore[arg-type]
    assert shares[0]["outflanked"] == 0


def test_comparison_and_figures() -> None:
    rows = [
        {"answers": answers, "k": 8, "pattern": pattern, "algorithm": algorithm, "seed": seed, "saturation": star,
         "load": load, "sustained": load <= star, "lifetime_ns": 1000 * load}
        for answers in outflank.ANSWERS
        for pattern in outflank.PATTERNS
        for algorithm in outflank.ALGORITHMS
        for seed, star in ((1, 0.6), (2, 0.5), (3, 0.65))
        for load in (0.1, 0.5, 0.6, 0.65)
    ]  # fmt: skip
    data = pd.DataFrame(rows)
    compared = {(c.quantity, c.assumption.split(";")[0]): c for c in outflank._compare_cells(data, Options())}
    assert len(compared) == 2 * (15 + 1)
    cell = compared["γ*, k = 8, butterfly, OFR", "answers: simulator"]
    assert (cell.paper, cell.ours) == (0.6, 0.6)
    assert cell.assumption.endswith("within 0.05, seeds 0.50 to 0.65")
    # the median of the seeds is 0.6 everywhere
    near = sum(abs(0.6 - value) < 0.051 for cells in outflank.PAPER[8].values() for value in cells)
    assert compared["cells within 0.05, k = 8", "answers: definition"].ours == near > 0
    assert "beyond 0.05" in compared["γ*, k = 8, 3-D transposition, ABR", "answers: definition"].assumption
    assert len(outflank._draw_cells(data, Options()).axes) == len(outflank.PATTERNS)
    points = pd.DataFrame(outflank._share_points(Options()))
    points["outflanked"], points["wrapped"] = 0.25, 0.125
    found = {c.quantity: c for c in outflank._compare_shares(points, Options())}
    assert found["share of detours, uniform, OFR, together"].ours == 0.375
    assert found["share of detours, uniform, OFR, together"].paper == pytest.approx(0.18)
    assert len(outflank._draw_shares(points, Options()).axes[0].lines) == 4


def test_experiments_change_one_answer_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for full in (False, True):
        points = outflank_assumptions._points(Options(full=full))
        assert len({tuple(p.values()) for p in points}) == len(points) > 30
    for answers in outflank.ANSWERS:
        for algorithm in ("por", "ofr"):
            whole = {
                a: outflank.cell_config("bit_reverse", algorithm, 8, a, 6).packet.model_dump() for a in outflank.ANSWERS
            }
            differing = {key for key in whole[answers] if whole["definition"][key] != whole["simulator"][key]}
            seen = set()
            for changes in outflank_assumptions.changes(answers, "bit_reverse", algorithm).values():
                assert len(changes) <= 1
                changed = outflank.cell_config("bit_reverse", algorithm, 8, answers, 6, **changes).packet.model_dump()
                assert {key: changed[key] for key in changed if changed[key] != whole[answers][key]} == changes
                other = whole["simulator" if answers == "definition" else "definition"]
                seen |= {key for key in changes if changed[key] == other[key]}
            # every point in which the two differ is one experiment
            assert seen == differing
    monkeypatch.setattr(outflank_assumptions, "cell_config", small)
    monkeypatch.setattr(outflank_assumptions, "network_config", lambda _radices, *cell: small(*cell[:2], 8, *cell[2:]))
    points = outflank_assumptions._points(Options())
    # on the small network all changes of a cell give the same
    cells = {(p["pattern"], p["algorithm"]): {**p, "messages": 3} for p in points}
    measured = {key: outflank_assumptions.measure_change(p, Options()) for key, p in cells.items()}
    data = pd.DataFrame([{**row, **p} for p in points for row in measured[p["pattern"], p["algorithm"]]])
    compared = outflank_assumptions._compare(data, Options())
    assert len(compared) == len(points)
    assert compared[0].paper == 0.55
    assert compared[0].assumption.startswith("answers: definition; changed: nothing; ")
    assert len(outflank_assumptions._draw(data, Options()).axes) == len(outflank_assumptions.CELLS)


def test_eta_decides_how_many_packets_take_a_detour(monkeypatch: pytest.MonkeyPatch) -> None:
    points = outflank_eta._points(Options())
    assert len(points) == len({tuple(p.values()) for p in points}) == 2 * 2 * 8
    assert len(outflank_eta._points(Options(full=True))) == 2 * 5 * 2 * 8
    assert outflank.cell_config("uniform", "por", 8, "simulator", 6, eta=1.5).packet.eta == 1.5

    def ring(pattern: str, algorithm: str, _k: int, _answers: str, messages: int, eta: float = 0.0) -> Config:
        text = small("tornado", algorithm, 8, "definition", messages)
        topology = text.topology.model_copy(update={"radices": (5, 5)})
        packet = text.packet.model_copy(update={"eta": eta})
        return text.model_copy(update={"topology": topology, "packet": packet})

    monkeypatch.setattr(outflank_eta, "cell_config", ring)
    monkeypatch.setattr(outflank_eta, "LOAD", 1.0)
    found = {
        eta: pd.DataFrame(outflank_eta.measure_eta({**points[0], "eta": eta, "messages": 3}, Options()))
        for eta in (0.0, 1.0, 1000.0)
    }
    derouted = [float(rows["derouted_at_load"].iloc[0]) for rows in found.values()]
    # a way of more hops is never taken where the length decides: d̃ > d with an odd number of nodes in a ring
    assert derouted[0] > derouted[1] > derouted[2] == 0
    minimal = run_packets(PacketNetwork(ring("", "abr", 8, "", 3), 1.0, 1))
    assert found[1000.0]["lifetime_at_load_ns"].iloc[0] == minimal.lifetime_ns
    data = pd.concat(found.values())
    compared = outflank_eta._compare(data, Options())
    assert [(c.quantity, c.paper) for c in compared] == [
        ("γ*, butterfly, POR, η = 0", None),
        ("γ*, butterfly, POR, η = 1", 0.55),
        ("γ*, butterfly, POR, η = 1000", None),
    ]
    assert all(c.ours == rows["saturation"].iloc[0] for c, rows in zip(compared, found.values(), strict=True))
    assert len(outflank_eta._draw(data, Options()).axes) == 3


def test_meshes_have_outflank_detours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    meshes = {name: len(radices) for name, radices in outflank_mesh.RADICES.items()}
    assert set(meshes.values()) == {2, 3}
    for point in outflank_mesh._points(Options()):
        # every pattern is one for this number of nodes
        config = outflank_mesh.mesh_config(*(str(point[key]) for key in ("mesh", "pattern", "algorithm", "answers")))
        PacketNetwork(config, 0.1, 1)
    monkeypatch.setattr(outflank_mesh, "RADICES", {"8×4": (8, 4)})
    monkeypatch.setattr(outflank_mesh, "PATTERNS", {"uniform": "uniform", "bit_reverse": "bit-reverse"})
    points = outflank_mesh._points(Options())
    data = pd.DataFrame([row for point in points for row in outflank_mesh.measure_mesh(point, Options())])
    assert data["outflanked"].max() > 0
    assert data["wrapped"].max() == 0
    compared = {c.quantity: c for c in outflank_mesh._compare(data, Options())}
    assert len(compared) == 4
    assert len(points) == 2 * 4
    part = data[
        (data["answers"] == "simulator")
        & (data["pattern"] == "uniform")
        & (data["algorithm"] == "ofr")
        & data["sustained"]
    ]
    assert compared["γ*, mesh 8×4, uniform, OFR"].ours == part["load"].max() > 0
    assert len(outflank_mesh._draw(data, Options()).axes) == 1


def square(point: dict[str, int], _options: Options) -> list[dict[str, int]]:
    return [{"x": point["x"], "y": point["x"] ** 2}]


@pytest.mark.study
def test_points_measured_by_several_processes_come_in_order(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results.os, "cpu_count", lambda: 2)
    reproduction = Reproduction(
        "test.parallel", "Squares", "nowhere", ("none",),
        points=lambda _options: [{"x": x} for x in range(6)],
        measure=square,  # type: ignore[arg-type]
        compare=lambda data, _options: [Comparison("sum", "", 55.0, float(data["y"].sum()), "")],
        draw=lambda _data, _options: new_figure()[0],
        parallel=True,
    )  # fmt: skip
    seen: list[tuple[int, int]] = []
    outcome = run_reproduction(reproduction, tmp_path, Options(), lambda _, done, total: seen.append((done, total)))
    assert pd.read_csv(outcome.folder / "data.csv")["y"].tolist() == [0, 1, 4, 9, 16, 25]
    assert seen == [(k, 6) for k in range(7)]
    assert run_reproduction(reproduction, tmp_path, Options()).resumed_points == 6


@pytest.mark.study
def test_most_cells_of_table_2_are_within_a_step(tmp_path) -> None:
    outcome = run_reproduction(REPRODUCTIONS["outflank.table2"], tmp_path, Options())
    for answers, least in (("simulator", 12), ("definition", 0)):
        of_them = [c for c in outcome.comparisons if c.assumption.startswith(f"answers: {answers}")]
        cells = [c for c in of_them if c.quantity.startswith("γ*")]
        (total,) = [c for c in of_them if c.quantity == "cells within 0.05, k = 8"]
        near = [c.quantity for c in cells if abs(c.ours - c.paper) < 0.051]  # type: ignore[operator]
        assert len(cells) == total.paper == 15
        assert len(near) == total.ours >= least, near
