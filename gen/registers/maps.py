"""Register maps of a package in the languages of other tools: SystemRDL, CMSIS-SVD, C."""

from hopforge import __version__
from hopforge.gen.registers.c_header import c_header_text
from hopforge.gen.registers.space import register_blocks
from hopforge.gen.registers.svd import svd_text
from hopforge.gen.registers.systemrdl import systemrdl_text
from hopforge.model.router.bus_space import AddressSpace

__all__ = ["register_map_files"]


def register_map_files(name: str, description: str, space: AddressSpace, *, bus: str) -> dict[str, str]:
    """Text of every description by what follows the name of the package.

    Parameters
    ----------
    name, description : str
        Of the package.
    space : AddressSpace
        Its registers.
    bus : str
        Its bus; the native one has no interrupt.
    """
    blocks = register_blocks(space, interrupts=bus != "native")
    return {
        ".rdl": systemrdl_text(name, description, blocks),
        ".svd": svd_text(name, description, blocks, version=__version__),
        ".h": c_header_text(name, description, blocks),
    }
