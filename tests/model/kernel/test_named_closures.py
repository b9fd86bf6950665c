"""Functions around others of the program are kept on disk under a name that is the same in every process."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import int64, njit

from hopforge.model.config import AddressConfig, MeshConfig
from hopforge.model.kernel.compile import around
from hopforge.model.kernel.named_closures import name_of
from hopforge.model.routing import prepare_routing
from hopforge.model.routing.combined.aggregation import _over_members
from hopforge.model.routing.combined.message_classes import _of_class
from hopforge.model.routing.combined.parallel_links import _over_all, _over_chosen
from hopforge.model.routing.combined.traffic_classes import _of_class as _of_traffic_class
from hopforge.model.routing.contract.plan import relation
from hopforge.model.topology import build


def route(algorithm: str = "dor") -> Any:
    return prepare_routing(build(MeshConfig(kind="mesh", radices=(2, 2)), AddressConfig()), 2, algorithm, {}).route


def named() -> list[str | None]:
    """Names of relations around others, in an order of their own."""
    one, other = route(), route("up_down")
    return [name_of(made.py_func) for made in (
        _of_class(one, 1), _of_class(one, 2), _of_class(other, 1), _of_class(_of_class(one, 1), 1),
        _over_all(one), _over_chosen(one, True), _over_chosen(one, False), _over_members(one),
        _of_traffic_class(one, ((0, 1, 0), (1, 1, 0))), _of_traffic_class(one, ((0, 2, 0), (2, 1, 0))),
        _of_traffic_class(one, ((0, 1, 0), (1, 1, 7))), _over_members(_of_class(one, 1)),
    )]  # fmt: skip


def test_each_has_a_name_of_its_own_and_the_same_in_another_process() -> None:
    names = named()
    assert None not in names
    assert len(set(names)) == len(names)
    script = "import test_named_closures as here; print(*here.named(), sep='\\n')"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    assert run.stdout.splitlines() == names, run.stderr[-2000:]


def _clockwise(router: int, in_port: int, in_vc: int, packet: Any, net: Any, table: Any, memory: Any, out: Any) -> int:
    return 0


def test_what_is_not_the_programs_has_no_name() -> None:
    """Nor has what holds it: its file is none of those that name the folder of machine code."""
    assert name_of(_clockwise) is None
    assert name_of(_of_class(relation(_clockwise), 1).py_func) is None
    assert name_of(_over_members(_of_class(relation(_clockwise), 1)).py_func) is None


def test_what_it_holds_must_be_numbers_texts_and_functions() -> None:
    held = _over_members(route()).py_func

    def with_cell(value: Any) -> Callable[..., Any]:
        def make() -> Callable[..., Any]:
            return lambda: value

        return type(held)(held.__code__, held.__globals__, held.__name__, None, make().__closure__)

    assert name_of(with_cell(7)) is not None
    assert name_of(with_cell((1, (2.5, "a", True)))) is not None
    assert name_of(with_cell(np.zeros(3))) is None
    assert name_of(with_cell([1])) is None
    assert name_of(with_cell((1, np.int64(2)))) is None


def test_a_copy_with_other_globals_has_no_name() -> None:
    """Such as a guard, which calls the function that stands in its globals."""
    held = _over_members(route()).py_func
    copy = type(held)(held.__code__, dict(held.__globals__), held.__name__, None, held.__closure__)
    assert name_of(held) is not None
    assert name_of(copy) is None


def test_another_function_under_the_name_in_its_module_has_no_name() -> None:
    own = route().py_func
    copy = type(own)(own.__code__, own.__globals__, "somewhere_else", None, None)
    assert name_of(own) is not None
    assert name_of(copy) is None


def test_options_with_which_the_others_were_compiled_are_told_apart() -> None:
    """The same relation with checked indices is other machine code."""
    own = route()
    checked = njit(boundscheck=True)(own.py_func)
    assert len({name_of(_of_class(each, 1).py_func) for each in (own, checked)} - {None}) == 2


def test_what_has_no_name_is_compiled_all_the_same() -> None:
    inner = njit(lambda x: 3 * x)
    assert around(int64(int64), lambda x: inner(x) + 1)(5) == 16
