"""Lint of what a configuration gives: lookup engine, router, network, Q-adaptive, collective plane, rule cache."""

from collections.abc import Iterator

from hopforge.gen.packages.parts import PARTS
from hopforge.gen.verilog.lint import LintReport, lint_text
from hopforge.gen.verilog.writer import to_verilog
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.progress import tell

__all__ = ["lint_config"]


def lint_config(config: Config, what: str | None = None, *, router: int = 0) -> Iterator[tuple[str, LintReport]]:
    """Yield (name of the design, what Verilator and slang say) for each part.

    Parameters
    ----------
    config : Config
        Checked configuration.
    what : str, optional
        One of `PARTS`; by default lookup engine and router.
    router : int
        Number of the router.

    Raises
    ------
    UserError
        An unknown part, or one that the hardware cannot be.
    """
    if what is not None and what not in PARTS:
        raise UserError(f"--what must be one of {', '.join(PARTS)}, not {what!r}")
    for part in ("lookup", "router") if what is None else (what,):
        package = PARTS[part](config, **({"router": router} if part == "router" else {}))
        tell(f"looking at {package.name} with Verilator and slang")
        yield package.name, lint_text(to_verilog(package.component, package.name), package.name)
