"""What a configuration can be generated as: the packages by the names of the parts, in memory or in a folder."""

from collections.abc import Callable
from pathlib import Path

from hopforge.gen.packages.collectives import collectives_package
from hopforge.gen.packages.lookup import lookup_package
from hopforge.gen.packages.network import network_package
from hopforge.gen.packages.package import Package, package_files, write_package
from hopforge.gen.packages.q_table import q_table_package
from hopforge.gen.packages.router import router_package
from hopforge.gen.packages.rule_cache import rule_cache_package
from hopforge.model.config import Config

__all__ = ["PARTS", "generate_part", "part_files"]

PARTS: dict[str, Callable[..., Package]] = {
    "lookup": lookup_package,
    "router": router_package,
    "network": network_package,
    "q_table": q_table_package,
    "collectives": collectives_package,
    "rule_cache": rule_cache_package,
}
"""Part → its package from a configuration; `router` takes `router` (a number), `q_table` takes `shared_read`."""


def part_files(config: Config, part: str, *, period_ns: float | None = None, **options: int) -> dict[str, str]:
    """Text of every generated file by its name, Verilog first, manifest last.

    Parameters
    ----------
    config : Config
        Checked configuration.
    part : str
        One of `PARTS`.
    period_ns : float, optional
        Clock period of the constraints, ns; by default that of the package.
    **options
        Those that the part takes.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants.
    """
    return package_files(PARTS[part](config, **options), period_ns=period_ns)


def generate_part(
    config: Config, part: str, folder: Path, *, period_ns: float | None = None, **options: int
) -> list[Path]:
    """Write what `part_files` returns, and return its places; the files appear together, complete.

    Raises
    ------
    UserError
        If the hardware cannot do what the configuration wants, or the folder cannot be written.
    """
    return write_package(part_files(config, part, period_ns=period_ns, **options), folder)
