"""`hopforge wavelengths`: packets of files and networks, rates, costs, the cheapest arrangement, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hopforge.cli import app
from hopforge.model.config import ConfigError, parse_config
from hopforge.model.errors import UserError
from hopforge.model.lookup.lane_rates import lane_rate
from hopforge.sim.hits.hit_rates import run_hits
from hopforge.sim.hits.link_packets import network_links, read_link
from hopforge.sim.hits.prepared import prepare_hits
from hopforge.sim.hits.wavelength_costs import Engines, area_mm2, power_w
from hopforge.sim.hits.wavelengths import Wavelengths, prepare_wavelengths

_PLACES = [folder / "shared" / "beyond" / "levels.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.is_file()), None)
MESH = "name: x\ntopology: {kind: mesh, radices: [3, 3]}\n"
TORUS = (
    "name: x\ntopology: {kind: torus, radices: [4, 4]}\nworkload: {kind: uniform, packets_per_host: 60}\n"
    "lookup: {cache: {entries: 16, ways: 4}"
)


def run(text: str) -> Wavelengths:
    config = parse_config(text)
    found = Wavelengths(config, prepare_wavelengths(config))
    found.run()
    return found


@pytest.mark.skipif(GOLDEN is None, reason="the folder shared is not beside this checkout")
def test_golden_cases_from_a_file(tmp_path: Path) -> None:
    """Misses and both rates of every run, through the file of packets and the section."""
    assert GOLDEN is not None
    seen = 0
    for case in json.loads(GOLDEN.read_text())["wdm"]:
        file = tmp_path / "p.csv"
        file.write_text("destination,bytes\n" + "".join(f"{dst},{size}\n" for dst, size in case["packets"]))
        geometry = {(each["entries"], each["ways"]) for each in case["runs"]}
        for entries, ways in geometry:
            lanes = sorted({each["lanes"] for each in case["runs"]})
            table = run(
                f"{MESH}lookup: {{cache: {{entries: {entries}, ways: {ways}}}}}\nwavelengths: {{lanes: {lanes}, "
                f"spread: [rr, least, hash, hash_low, bank], packets: {file}}}\n"
            ).arrangements
            for each in case["runs"]:
                one = each["lanes"] == 1
                spread = "none" if one else each["assign"]
                here = table[(table["lanes"] == each["lanes"]) & (table["spread"] == spread)]
                here = here[here["share"] == each["share"]].set_index("tcams")
                assert set(here["misses"]) == {each["total"]}
                assert here["rate_mpps"]["link"] * 1e6 == pytest.approx(each["shared"], rel=1e-12)
                assert here["rate_mpps"]["link" if one else "lane"] * 1e6 == pytest.approx(each["own"], rel=1e-12)
                seen += 1
    assert seen >= 40


def test_one_lane_is_what_hits_replays() -> None:
    """Every input port of the network sees the same keys in the same order."""
    for reduction in ("true", "false"):
        config = parse_config(f"{TORUS}, reduction: {reduction}}}\nwavelengths: {{lanes: [1]}}\n")
        table = run(f"{TORUS}, reduction: {reduction}}}\nwavelengths: {{lanes: [1]}}\n").arrangements
        hits = run_hits(config)
        assert table["misses"].tolist() == [hits.totals["misses"]] * 2
        assert table["lookups"].tolist() == [hits.totals["lookups"]] * 2
        slowest = hits.ports["forwarding_mpps"].min()
        assert table.set_index("tcams")["rate_mpps"]["link"] == pytest.approx(slowest)


def test_sources_of_the_packets_of_a_network() -> None:
    setup = prepare_hits(parse_config(f"{TORUS}, reduction: false}}\n"))
    links = network_links(setup.caches, setup.workload, 84)
    address = setup.topology.host_address
    sources, destinations = setup.workload.all_packets()
    assert len(links.keys) > len(sources) > 0
    for cache in range(setup.caches.inputs.caches):  # a port to a host sees the packets of this host alone
        router, port = setup.caches.inputs.router[cache], setup.caches.inputs.port[cache]
        host = setup.topology.host_at[router, port]
        if host < 0:
            continue
        part = slice(links.starts[cache], links.starts[cache + 1])
        assert set(links.sources[part].tolist()) == {int(address[host])}
        assert links.keys[part].tolist() == address[destinations[sources == host]].tolist()


def test_rates_by_hand() -> None:
    rates: dict[str, Any] = {"cache_ns": 2.0, "tcam_ns": 10.0}
    assert lane_rate([30, 10], [1, 8], **rates) == pytest.approx(40 / 80 * 1e9)
    assert lane_rate([30, 10], [1, 2], **rates) == pytest.approx(40 / 60 * 1e9)
    assert lane_rate([30, 10], [1, 8], shared=1, **rates) == pytest.approx(40 / 90 * 1e9)
    assert lane_rate([30, 10], [0, 1], shared=64, **rates) == pytest.approx(40 / 640 * 1e9)
    assert lane_rate([30, 0], [0, 0], shared=64, **rates) == pytest.approx(30 / 60 * 1e9)
    with pytest.raises(ValueError, match="packets must be at least 1 in all, not 0"):
        lane_rate([0, 0], [0, 0], **rates)
    with pytest.raises(ValueError, match="misses must be as many as packets=2, not 1"):
        lane_rate([1, 0], [0], **rates)


def test_costs_by_hand() -> None:
    config = parse_config(
        f"{MESH}lookup: {{cache: {{entries: 64}}, tcam: {{kind: flops, rows: 8}}}}\nwavelengths: {{ports: 4}}\nenergy: "
        "{engine_um2: 1000.0, cache_um2_per_byte: 2.0, tcam_um2_per_row: 100.0}\ntiming: {cache_energy_nj: 1.0, "
        "tcam_energy_nj: 10.0, cache_power_mw: 100.0, tcam_power_mw: 40.0, slot_bytes: 125}\n"
    )
    assert area_mm2(config, Engines(2, 32, "lane")) == pytest.approx((2 * (1000 + 32 * 24) + 2 * 800) * 1e-6)
    assert area_mm2(config, Engines(2, 64, "link")) == pytest.approx((2 * (1000 + 64 * 24) + 800) * 1e-6)
    assert area_mm2(config, Engines(1, 64, "switch")) == pytest.approx((1000 + 64 * 24 + 200) * 1e-6)
    # 1 Gbps are 10^6 packets of 125 bytes a second, of (1 + 10/2) nJ
    assert power_w(config, Engines(2, 32, "lane"), 0.5, 1) == pytest.approx(0.006 + 0.1 + 0.08)
    assert power_w(config, Engines(2, 64, "switch"), 0.5, 1) == pytest.approx(0.006 + 0.2 + 0.01)
    outside = config.model_copy(
        update={"lookup": config.lookup.model_copy(
            update={"tcam": config.lookup.tcam.model_copy(update={"kind": "external"})})}
    )  # fmt: skip
    assert area_mm2(outside, Engines(2, 32, "lane")) == pytest.approx(2 * (1000 + 32 * 24) * 1e-6)


def test_the_cheapest_is_the_least_of_those_that_keep_up(tmp_path: Path) -> None:
    """All packets to one destination: one lane looks up 10^9 a second, 672 Gbps of 84 bytes."""
    (tmp_path / "p.csv").write_text("destination\n" + "7\n" * 4000)
    file = tmp_path / "p.csv"
    found = run(f"{MESH}wavelengths: {{packets: {file}, lanes: [1, 2, 4], rates_gbps: [400, 1200, 9000]}}\n")
    table = found.cheapest.set_index(["link_gbps", "least"])
    assert table["lanes"][400, "area"] == 1
    assert table["keep_up"][400, "area"] == len(found.arrangements) == 2 + 2 * 4 * 2 * 3
    best = table.loc[(1200, "area")]
    assert (best["lanes"], best["spread"], best["share"]) == (2, "rr", "split")
    assert table["switch_area_mm2"][1200, "area"] == pytest.approx(64 * table["area_mm2"][1200, "area"])
    assert table["keep_up"][9000, "area"] == 0
    assert pd.isna(table["lanes"][9000, "power"])
    assert any("none keeps up" in cell for line in found.cheapest_lines() for cell in line)
    hashed = found.arrangements[found.arrangements["spread"].isin(["hash", "flow", "bank"])]
    assert (hashed["balance"] == 1 / hashed["lanes"]).all(), "one destination fills one lane"
    for _, row in found.cheapest[found.cheapest["keep_up"] > 0].iterrows():
        enough = found.arrangements[found.arrangements["rate_mpps"] >= row["needed_mpps"]]
        if row["least"] == "area":
            assert row["area_mm2"] == enough["area_mm2"].min()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lanes: [3]", "wavelengths.lanes: must divide rates_gbps=400, not 3"),
        ("lanes: [1, 16], rates_gbps: [800, 1000]", "wavelengths.lanes: must divide rates_gbps=1000, not 16"),
        ("lanes: []", "wavelengths.lanes: must not be empty"),
        ("lanes: [2, 2]", "wavelengths.lanes: names 2 twice"),
        ("lanes: [0]", "wavelengths.lanes"),
        ("spread: [lane]", "wavelengths.spread"),
        ("lanes: [5]", "wavelengths.lanes: must split lookup.cache.entries=16 into sets of 4 ways, not 5"),
        ("lanes: [8]", "wavelengths.lanes: must split lookup.cache.entries=16 into sets of 4 ways, not 8"),
    ],
)
def test_refused_sections(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(f"{TORUS}}}\nwavelengths: {{{text}}}\n")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lookup", "words"),
    [
        ("cache: {entries: 16, enabled: false}", "lookup.cache.enabled: must be true for `hopforge wav"),
        ("cache: {entries: 16, skewed: true, policy: random}", "lookup.cache.skewed: must be false"),
        ("cache: {entries: 16, second_level: {}}", "lookup.cache.second_level: must be null"),
        ("cache: {entries: 64}, ports_per_engine: 2", "lookup.ports_per_engine: must be 1"),
        ("cache: {entries: 64, crc: {width: 16, poly: 0x1021}}", "lookup.cache.crc: must have at least 19 bits for "
         "wavelengths.spread=flow over 8 lanes, not 16"),
        ("cache: {entries: 64}, reduction: false, tcam: {kind: flops, rows: 1}", "lookup.tcam.rows: must hold all"),
    ],
)
def test_refused_engines(lookup: str, words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        run("name: x\ntopology: {kind: torus, radices: [4, 4]}\nworkload: {kind: uniform, packets_per_host: 9}\n"
            f"lookup: {{{lookup}}}\n")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: must name the columns, destination among them, not ''"),
        ("dst\n3\n", ":1: must name the columns, destination among them, not 'dst'"),
        ("destination,size\n3,4\n", ":1: columns are destination, bytes, source, not 'size'"),
        ("destination,destination\n3,4\n", ":1: names column destination twice"),
        ("destination\n", ": holds no packet"),
        ("destination,bytes\n3,84\n\n4\n", ":4: must have 2 cells, not 1"),
        ("destination\n3\n-4\n", ":3: destination: must be a whole number, not '-4'"),
        ("destination\n16777216\n", ":2: destination: must be 0 to 16777215, not 16777216"),
        ("destination,bytes\n3,0\n", ":2: bytes: must be 1 to 1048576, not 0"),
        ('destination\n"3\n', ": unexpected end of data"),
    ],
)
def test_refused_files(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "p.csv"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read_link(file, 24, 84)
    assert str(caught.value).startswith(str(file))
    assert words in str(caught.value)


def test_columns_that_a_file_lacks(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("source, destination\n9, 3\n8, 4\n")
    link = read_link(file, 24, 99)
    assert (link.keys.tolist(), link.sources.tolist(), link.bytes.tolist()) == ([3, 4], [9, 8], [99, 99])


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yml").write_text(f"{TORUS}}}\nrouter: {{vcs: 2}}\nwavelengths: {{lanes: [1, 4]}}\n")
    done = CliRunner().invoke(app, ["wavelengths", "x.yml"])
    assert done.exit_code == 0, done.output
    assert "hopforge wavelengths does not use router" in done.output
    folder = Path("build/x/wavelengths")
    table = pd.read_csv(folder / "arrangements.csv")
    assert {"lane", "link", "switch"} == set(table["tcams"])
    assert np.isfinite(table["rate_mpps"]).all()
    assert (folder / "rates.png").is_file() and (folder / "cheapest.parquet").is_file()
    Path("p.csv").write_text("destination\n3\n")
    Path("y.yml").write_text(f"{TORUS}}}\nwavelengths: {{lanes: [1], packets: p.csv}}\n")
    done = CliRunner().invoke(app, ["wavelengths", "y.yml"])
    assert "hopforge wavelengths does not use workload" in done.output
