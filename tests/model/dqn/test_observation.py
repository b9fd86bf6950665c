"""Which actions bring a packet nearer, against the distances of the neighbours."""

from itertools import product

import numpy as np
import pytest

from hopforge.model.dqn.observation import distance, minimal_actions


@pytest.mark.parametrize("wraps", [True, False])
@pytest.mark.parametrize("radices", [(4, 4), (5, 3), (2, 3), (3, 2, 4), (1, 4)])
def test_minimal_actions_lead_nearer(radices: tuple[int, ...], *, wraps: bool) -> None:
    size, places = np.array(radices), [np.array(place) for place in product(*map(range, radices))]
    checked = 0
    for here, there in product(places, places):
        wanted = 0
        for action in range(2 * len(radices)):
            beside = here.copy()
            beside[action // 2] += 1 if action % 2 else -1
            if wraps:
                beside %= size
            elif not (beside >= 0).all() or (beside >= size).any():
                continue
            wanted |= (distance(size, wraps, beside, there) < distance(size, wraps, here, there)) << action
        assert minimal_actions(size, wraps, here, there) == wanted
        checked += wanted > 0
    assert checked == len(places) * (len(places) - 1)
