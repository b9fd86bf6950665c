"""Find a routing algorithm: one of ours by name, or a user's own Python file."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopforge.model.routing.plan import ROUTING, RoutingError, RoutingPlan
from hopforge.model.topology import Topology


def load_user_file(path: Path, attribute: str, key: str) -> Any:
    """Attribute `attribute` of the Python file `path`; the module stays importable, so that numba caches its functions.

    Raises
    ------
    RoutingError
        The file is missing, cannot be run, or lacks the attribute; `key` names the configuration key.
    """
    if not path.is_file():
        raise RoutingError(f"{key}: no file {path}")
    name = f"hopforge_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RoutingError(f"{key}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _imports_beside(path):
            spec.loader.exec_module(module)
    except SystemExit as error:
        raise RoutingError(f"{key}: {path} cannot be run: it ends Python (sys.exit)") from error
    except Exception as error:
        raise RoutingError(
            f"{key}: {path} cannot be run: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        ) from error
    if not hasattr(module, attribute):
        raise RoutingError(f"{key}: {path} defines no {attribute}")
    return getattr(module, attribute)


@contextmanager
def _imports_beside(path: Path) -> Iterator[None]:
    """Let a user's file import modules that lie beside it; those beside another file are forgotten."""
    folder = str(path.resolve().parent)
    for name, other in list(_beside.items()):
        if other != folder:
            sys.modules.pop(name, None)
            del _beside[name]
    before = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            file = str(getattr(sys.modules[name], "__file__", None) or "")
            if file.startswith(f"{folder}{os.sep}") and "site-packages" not in file:
                _beside[name] = folder


#: modules that were imported from beside a user's file, and its folder
_beside: dict[str, str] = {}


def prepare_routing(
    topology: Topology, vcs: int, algorithm: str, options: dict[str, Any], folder: Path = Path()
) -> RoutingPlan:
    """Make `algorithm` ready for `topology`.

    Parameters
    ----------
    topology : Topology
        The network.
    vcs : int
        Virtual channels per port.
    algorithm : str
        A name of `ROUTING`, or ``FILE.py`` (its function ``prepare(topology, vcs, options) -> RoutingPlan`` is called).
    options : dict
        The other keys of section `routing`.
    folder : Path
        Where a relative file name starts.

    Raises
    ------
    RoutingError
        Unknown name, unsuitable network, too few VCs.
    """
    if algorithm.endswith(".py"):
        prepare = load_user_file(folder / algorithm, "prepare", "routing.algorithm")
    elif algorithm in ROUTING:
        prepare = ROUTING[algorithm]
    else:
        raise RoutingError(
            f"routing.algorithm must be one of {', '.join(sorted(ROUTING))} or a FILE.py, not {algorithm}"
        )
    plan = prepare(topology, vcs, options)
    if not isinstance(plan, RoutingPlan):
        raise RoutingError(
            f"routing.algorithm {algorithm}: prepare must return a RoutingPlan, not {type(plan).__name__}"
        )
    return plan
