"""Where numba finds a kernel of the program: by its place in the program, wherever the program lies.

The folder above tells the contents of the whole program (`program_cache`), so neither path nor time of a file decides:
a second copy of the same program, such as an installed one beside a clone, compiles nothing again.
"""

from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

from hopforge.model.kernel.program_cache import program, program_root


class ProgramLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """Of functions in files of the program; named in `program_cache`."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the folder of a file, as seen from the package."""
        return "-".join(Path(py_file).parent.relative_to(program_root()).parts)

    def get_source_stamp(self) -> str:
        """Return what tells whether the file is the same."""
        return program().digest
