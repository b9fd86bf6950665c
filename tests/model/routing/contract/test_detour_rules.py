"""Single decisions of adaptive routing against those that were made elsewhere (shared/networks/golden/rules.json)."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopforge.model.routing.contract.detour_rules import (
    DOUBLE,
    PRODUCT,
    THREE_HALVES,
    cost_of,
    is_congested,
    takes_detour,
    takes_detour_by_sums,
    weight_of,
)

_PLACES = [folder / "shared" / "networks" / "golden" / "rules.json" for folder in Path(__file__).parents]
GOLDEN = next((place for place in _PLACES if place.exists()), _PLACES[0])

#: some of the golden file, for checkouts without it
SOME: list[dict[str, Any]] = [
    {"rule": "flatfly_threshold", "h_min": 1, "q_min": 19, "h_nonmin": 5, "q_nonmin": 17, "threshold": 2,
     "intermediate_is_source": False, "expect": "minimal"},
    {"rule": "flatfly_threshold", "h_min": 3, "q_min": 35, "h_nonmin": 3, "q_nonmin": 18, "threshold": 2,
     "intermediate_is_source": False, "expect": "nonminimal"},
    {"rule": "ugal_l_four_candidates", "h_min": 1, "q_min": 23, "threshold": 0,
     "candidates": [{"h": 4, "q": 3}, {"h": 4, "q": 13}, {"h": 2, "q": 5}, {"h": 3, "q": 26}],
     "expect": {"choice": "nonminimal", "candidate": 2}},
    {"rule": "queue_ratio_2", "q_min": 37, "q_candidates": [29, 14, 11, 9], "bias": 0, "expect": "nonminimal"},
    {"rule": "queue_ratio_3_2", "q_min": 11, "q_candidates": [22, 24, 7, 2], "bias": 50, "expect": "minimal"},
    {"rule": "ugal_g_path_sum", "queues_min": [12, 1, 7], "queues_nonmin": [8, 2], "threshold": 2,
     "expect": "nonminimal"},
    {"rule": "polarfly_two_thirds", "vc_buffer": 32, "q_ports": [15, 5, 35], "min_port": 1, "q_min": 5,
     "expect": {"choice": "minimal"}},
    {"rule": "hyperx_incremental_weighted", "hops_left": 1, "vc_set": 1, "vc_sets": 3, "deroutes_allowed": True,
     "min": [0.75], "deroute": [0.125, 0.3125, 0.875, 0.75], "bias": 0.25,
     "expect": {"choice": "minimal", "ports": [0]}},
]  # fmt: skip


def two_ways(case: dict[str, Any]) -> str:
    if case["intermediate_is_source"]:  # no detour at all
        return "minimal"
    taken = takes_detour(
        PRODUCT, case["h_min"], case["q_min"], case["h_nonmin"], case["q_nonmin"], float(case["threshold"])
    )
    return "nonminimal" if taken else "minimal"


def several_ways(case: dict[str, Any]) -> dict[str, Any]:
    costs = [cost_of(PRODUCT, one["h"], one["q"]) for one in case["candidates"]]
    best = costs.index(min(costs))
    one = case["candidates"][best]
    if takes_detour(PRODUCT, case["h_min"], case["q_min"], one["h"], one["q"], float(case["threshold"])):
        return {"choice": "nonminimal", "candidate": best}
    return {"choice": "minimal"}


def ratio(case: dict[str, Any], rule: int) -> str:
    least = min(cost_of(rule, 3, queue) for queue in case["q_candidates"])
    return "nonminimal" if takes_detour(rule, 2, case["q_min"], 3, least, float(case["bias"])) else "minimal"


def sums(case: dict[str, Any]) -> str:
    detour = takes_detour_by_sums(sum(case["queues_min"]), sum(case["queues_nonmin"]), float(case["threshold"]))
    return "nonminimal" if detour else "minimal"


def two_thirds(case: dict[str, Any]) -> dict[str, Any]:
    port = case["q_ports"].index(min(case["q_ports"]))
    if not is_congested(case["q_min"], case["vc_buffer"]) or port == case["min_port"]:
        return {"choice": "minimal"}
    return {"choice": "nonminimal", "port": port}


def weighted(case: dict[str, Any]) -> dict[str, Any]:
    left, bias = case["hops_left"], float(case["bias"])
    minimal = [weight_of(left, queue, False, bias) for queue in case["min"]]
    assert case["deroutes_allowed"] == (left < case["vc_sets"] - case["vc_set"])
    deroutes = [weight_of(left, queue, True, bias) for queue in case["deroute"]] if case["deroutes_allowed"] else []
    chosen, weights = ("deroute", deroutes) if deroutes and min(deroutes) < min(minimal) else ("minimal", minimal)
    return {"choice": chosen, "ports": [k for k, weight in enumerate(weights) if weight == min(weights)]}


DECIDE = {
    "flatfly_threshold": two_ways,
    "ugal_l_four_candidates": several_ways,
    "queue_ratio_2": lambda case: ratio(case, DOUBLE),
    "queue_ratio_3_2": lambda case: ratio(case, THREE_HALVES),
    "ugal_g_path_sum": sums,
    "polarfly_two_thirds": two_thirds,
    "hyperx_incremental_weighted": weighted,
}


@pytest.mark.parametrize("case", SOME, ids=lambda case: case["rule"])
def test_decisions(case: dict[str, Any]) -> None:
    assert DECIDE[case["rule"]](case) == case["expect"]


@pytest.mark.skipif(not GOLDEN.exists(), reason="no golden decisions beside this checkout")
@pytest.mark.parametrize("rule", DECIDE)
def test_all_golden_decisions(rule: str) -> None:
    cases = [case for case in json.loads(GOLDEN.read_text()) if case["rule"] == rule]
    assert len(cases) >= 29
    assert [case for case in cases if DECIDE[rule](case) != case["expect"]] == []
