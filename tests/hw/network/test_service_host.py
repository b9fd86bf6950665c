"""The service host in hardware against its golden model: every output in every cycle; the table by itself."""

from typing import Any

import numpy as np
import pytest

from hopforge.gen.verilog.writer import to_verilog
from hopforge.hw.network.routed_table import RoutedTable
from hopforge.hw.network.service_host import ServiceHost
from hopforge.model.router.acknowledging_host import HardwareRules
from hopforge.model.router.params import RouterParams
from hopforge.sim.benches.service_host import ServiceTraffic, service_host_replay
from hopforge.sim.drive.replay import Replay, replay_amaranth

SMALL = {"ports": 4, "vcs": 2, "buffer_flits": 3, "width_bits": 32, "address_bits": 5, "tag_bits": 4, "length_bits": 4}
RULES = {"flits": 3, "queue": 2, "own_queue": 2, "table": 6, "note_bits": 5, "time_bits": 9}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, float], set[str]]] = {
    "plain": ({}, {}, {}, {"told_valid", "home", "sent", "made", "no_entry", "table_full"}),
    "age": ({}, {"age_limit_cycles": 13, "table": 9, "time_bits": 4}, {"heads": 0.5}, {"expired", "home", "sent"}),
    "much, slow links": (
        {"vcs": 3, "vc_release": "credits"}, {"queue": 1, "own_queue": 1, "delay_cycles": 4},
        {"credits": 0.2, "taken": 0.3},
        {"queue_full", "own_full", "sent"},
    ),
    "cut-through, ratio, no notes": (
        {"switching": "vct", "width_bits": 70, "buffer_flits": 5},
        {"flits": 2, "ratio": 4, "note_bits": 0, "delay_cycles": 2, "queue": 5, "time_bits": 40},
        {"heads": 0.3}, {"sent", "made"},
    ),
}  # fmt: skip


def bench(name: str, cycles: int = 500) -> tuple[ServiceHost, Replay]:
    changed, rules, traffic, _ = CASES[name]
    hardware = ServiceHost(
        params=RouterParams(**(SMALL | changed)), rules=HardwareRules(**(RULES | rules)), host_ports=(0,),
        vcs=(0,) if name == "age" else (0, 1),
    )  # fmt: skip
    return hardware, service_host_replay(hardware, ServiceTraffic(cycles=cycles, seed=3, **traffic))


@pytest.mark.parametrize("name", list(CASES))
def test_equals_golden_host(name: str) -> None:
    hardware, replay = bench(name)
    result = replay_amaranth(hardware, replay)
    assert result.first is None, str(result.first)
    names = [output.name for output in replay.outputs]
    for event in CASES[name][3]:
        assert np.count_nonzero(replay.expected[:, names.index(event)]) > 4, event


def test_a_wrong_output_is_seen() -> None:
    hardware, replay = bench("plain", 300)
    wrong = replay.expected.copy()
    wrong[200:, [output.name for output in replay.outputs].index("home")] ^= np.uint64(1)
    again = Replay(replay.inputs, replay.outputs, replay.driven, wrong)
    result = replay_amaranth(hardware, again)
    assert result.first is not None
    assert (result.first.cycle, result.first.signal) == (200, "home")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"queue": None}, "queue must be set in hardware, not null"),
        ({"flits": 1}, "flits must be 2 or more in hardware: all but the head hold the stamp, not 1"),
        ({"ratio": 3}, r"ratio must be a power of two up to 2\^tag_bits = 16 in hardware, not 3"),
        ({"ratio": 0}, "ratio must be a power of two .*, not 0"), ({"ratio": 32}, "ratio must be .*, not 32"),
        ({"own_queue": None}, "own_queue must be 1 or more in hardware, not null"),
        ({"time_bits": 33}, "time_bits must be at most the 32 bits"),
        ({"table": 0}, "table must be 1 to 256 in hardware, not 0"),
        ({"age_limit_cycles": 511}, r"age_limit_cycles must be below 2\^time_bits - 1 = 511 in hardware, not 511"),
    ],
)  # fmt: skip
def test_bad_rules(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServiceHost(params=RouterParams(**SMALL), rules=HardwareRules(**(RULES | rules)), host_ports=(0,), vcs=(0,))


def test_bad_table() -> None:
    sizes = {"depth": 4, "heads": 2, "label_bits": 4, "note_bits": 0, "time_bits": 4}
    with pytest.raises(ValueError, match="ports must be 1 or more, not 0"):
        RoutedTable(**(sizes | {"heads": 0}), age_limit=None)
    with pytest.raises(ValueError, match=r"time_bits must count beyond age_limit_cycles \+ 1 = 16, not 4"):
        RoutedTable(**sizes, age_limit=15)


def test_text_of_a_table_grows_with_its_places() -> None:
    """Expressions that each bit repeats made 54 000 lines of 113 places: simulators took minutes to read them."""
    lines = []
    for depth in (32, 64):
        table = RoutedTable(depth=depth, heads=3, label_bits=21, note_bits=0, time_bits=32, age_limit=None)
        lines.append(len(to_verilog(table, "table").splitlines()))
    assert lines[0] < 50 * 32, lines
    assert lines[1] < 2.5 * lines[0], lines
