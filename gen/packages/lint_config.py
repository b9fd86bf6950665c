"""Lint of what a configuration gives: lookup engine, router, network, Q-adaptive, collective plane, rule cache."""

from collections.abc import Callable, Iterator

from hopforge.gen.packages.collectives import collectives_files, collectives_name
from hopforge.gen.packages.lookup import lookup_files, top_name
from hopforge.gen.packages.network import network_files, network_name
from hopforge.gen.packages.q_table import q_table_files, q_table_name
from hopforge.gen.packages.router import router_files, router_name
from hopforge.gen.packages.rule_cache import rule_cache_files, rule_cache_name
from hopforge.gen.verilog.lint import LintReport, lint_text
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
        ``lookup``, ``router``, ``network``, ``q_table``, ``collectives`` or ``rule_cache``; by default lookup
        engine and router.
    router : int
        Number of the router.

    Raises
    ------
    UserError
        An unknown part, or one that the hardware cannot be.
    """
    parts: dict[str, tuple[str, Callable[[], dict[str, str]]]] = {
        "lookup": (top_name(config), lambda: lookup_files(config)),
        "router": (router_name(config, router), lambda: router_files(config, router=router)),
        "network": (network_name(config), lambda: network_files(config)),
        "q_table": (q_table_name(config), lambda: q_table_files(config)),
        "collectives": (collectives_name(config), lambda: collectives_files(config)),
        "rule_cache": (rule_cache_name(config), lambda: rule_cache_files(config)),
    }
    if what is not None and what not in parts:
        raise UserError(f"--what must be one of {', '.join(parts)}, not {what!r}")
    for part in ("lookup", "router") if what is None else (what,):
        name, files = parts[part]
        text = files()[f"{name}.sv"]
        tell(f"looking at {name} with Verilator and slang")
        yield name, lint_text(text, name)
