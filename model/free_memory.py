"""Memory that this machine can still give: a command that asks for more is refused, not killed by the system.

Linux hands out more memory than there is, and kills a process when it is used. A limit on the process' own data makes
numpy and Python raise a MemoryError in time.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hopforge.model.errors import UserError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MEMINFO = Path("/proc/meminfo")
#: limit and use of a container, by version of its control groups
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)
#: less than this is taken for a mistake in what the system tells
_LEAST = 1 << 28


def free_memory(meminfo: Path = _MEMINFO, groups: tuple[tuple[Path, Path], ...] = _GROUPS) -> int:
    """Return the bytes that a process can still get, swap included; 0: the system does not tell.

    Parameters
    ----------
    meminfo : Path
        As Linux writes it (proc(5)).
    groups : tuple of pairs of Path
        Files with limit and use of a container; those that are missing or tell no number do not count.
    """
    free = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        of = {line.split(":")[0]: int(line.split()[1]) << 10 for line in meminfo.read_text().splitlines()}
        free = of.get("MemAvailable", 0) + of.get("SwapFree", 0)
    for limit, use in groups:
        with contextlib.suppress(OSError, ValueError):
            left = max(int(limit.read_text()) - int(use.read_text()), 1)
            free = min(free, left) if free else left
    return free


def refuse_beyond_memory(need: int, what: str) -> None:
    """Refuse to make arrays that this process cannot get.

    Parameters
    ----------
    need : int
        Bytes.
    what : str
        That needs them, in the plural.

    Raises
    ------
    UserError
        Naming both numbers.
    """
    free = free_memory()
    if free and need > free:
        raise UserError(f"{what} need {need / (1 << 30):.3g} GiB of memory; there are {free / (1 << 30):.3g}")


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, get no more than what is free now.

    A limit that somebody has set, and that is lower, stays.
    """
    free = free_memory()
    if resource is None or not hasattr(resource, "RLIMIT_DATA") or free < _LEAST:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    lower = min([free, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)])
    with contextlib.suppress(OSError, ValueError):  # some systems allow no change
        resource.setrlimit(resource.RLIMIT_DATA, (lower, hard))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def out_of_memory() -> str:
    """Say that there was not enough, and how much there was."""
    given = 0
    if resource is not None:
        limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
        given = min((one for one in limits if one != resource.RLIM_INFINITY), default=0)
    return "not enough memory" + (f": there were {given / (1 << 30):.2g} GiB for this process" if given else "")
