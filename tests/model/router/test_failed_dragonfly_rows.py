"""Routers with lookup engines in a dragonfly of which a part has failed: rows lead where routing does."""

import pytest

from hopforge.gen.design.configured import network_design
from hopforge.model.config import parse_config


@pytest.mark.parametrize("failed", ["switches: [0]", "links: [[0, 2]]"])
def test_keys_of_a_link_that_has_failed_need_no_row(failed: str) -> None:
    design = network_design(parse_config(
        "name: x\ntopology: {kind: dragonfly, p: 2, a: 2, h: 1, g: 2}\nrouting: {algorithm: up_down}\n"
        f"router: {{vcs: 6, route_computation: lookup}}\nfailed: {{{failed}}}\n"
        "lookup: {tcam: {kind: flops, rows: 16}}\n"
    ), failed=True)  # fmt: skip
    assert any(program for program in design.programs)
