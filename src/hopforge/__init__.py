"""hopforge: switches and routing of high-performance interconnection networks, from gates to applications.

What Python programs use stands in `__all__` (docs/guides/python.md); all else may change without notice.
"""

import sys

try:
    from hopforge import interrupts
except KeyboardInterrupt:  # nothing has begun: no traceback of that
    sys.stderr.write("hopforge: interrupted\n")
    raise SystemExit(130) from None

if interrupts.is_command():  # before anything else is loaded
    interrupts.end_at_once()

from hopforge.moved import refuse_old_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hopforge.api.app import app
    from hopforge.api.bounds import bounds
    from hopforge.api.collectives import collectives
    from hopforge.api.compare import Comparison, compare
    from hopforge.api.configuration import Configuration, load, loads
    from hopforge.api.cosim import CosimResult, cosim
    from hopforge.api.errors import HopforgeWarning
    from hopforge.api.generate import GeneratedFiles, generate
    from hopforge.api.hits import hits
    from hopforge.api.jobs import jobs
    from hopforge.api.network import network
    from hopforge.api.result import Picture, Result
    from hopforge.api.route import route
    from hopforge.api.rules import rules
    from hopforge.api.simulate import SimulationResult, series, simulate
    from hopforge.api.sweep import sweep
    from hopforge.api.wavelengths import wavelengths
    from hopforge.model.config.load import ConfigError
    from hopforge.model.errors import DivergedError, Mistake, UserError
    from hopforge.model.routing.proof.deadlock import DeadlockError

__version__ = "0.1.0"

refuse_old_places()

__all__ = [
    "Comparison",
    "ConfigError",
    "Configuration",
    "CosimResult",
    "DeadlockError",
    "DivergedError",
    "GeneratedFiles",
    "HopforgeWarning",
    "Mistake",
    "Picture",
    "Result",
    "SimulationResult",
    "UserError",
    "__version__",
    "app",
    "bounds",
    "collectives",
    "compare",
    "cosim",
    "generate",
    "hits",
    "jobs",
    "load",
    "loads",
    "network",
    "route",
    "rules",
    "series",
    "simulate",
    "sweep",
    "wavelengths",
]

#: where a public name is found, when it is first asked for: `import hopforge` loads none of them
_PLACES = {
    **dict.fromkeys(["Configuration", "load", "loads"], "api.configuration"),
    **dict.fromkeys(["Comparison", "compare"], "api.compare"),
    "HopforgeWarning": "api.errors",
    **dict.fromkeys(["Picture", "Result"], "api.result"),
    **dict.fromkeys(["SimulationResult", "series", "simulate"], "api.simulate"),
    **dict.fromkeys(["CosimResult", "cosim"], "api.cosim"),
    **dict.fromkeys(["GeneratedFiles", "generate"], "api.generate"),
    **{name: f"api.{name}" for name in ("app", "bounds", "hits", "jobs", "network", "route", "rules", "sweep")},
    **{name: f"api.{name}" for name in ("collectives", "wavelengths")},
    "ConfigError": "model.config.load",
    **dict.fromkeys(["DivergedError", "Mistake", "UserError"], "model.errors"),
    "DeadlockError": "model.routing.proof.deadlock",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'hopforge' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only where it is needed

    found: object = getattr(import_module(f"hopforge.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
