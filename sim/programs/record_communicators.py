"""Communicators of a compiled program: SimGrid's traces lack them, so a small library of ours notes them beside.

`record_communicators.c` is compiled by `smpicc` and loaded before SimGrid's library. `add_communicators` writes what it
noted into the trace (docs/guides/workloads.md).
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hopforge.model.workload.trace import COLLECTIVES

_SOURCE = Path(__file__).with_suffix(".c")


class CommunicatorError(Exception):
    """Communicators could not be recorded: the message says why."""


def recorder(folder: Path) -> list[str]:
    """Compile the library and return the options of `smpirun` that let it write to `folder`/communicators.

    Raises
    ------
    CommunicatorError
        There is no `smpicc`, or it fails.
    """
    smpicc = shutil.which("smpicc")
    if smpicc is None:
        raise CommunicatorError("smpicc is not installed")
    if any(letter.isspace() for letter in str(folder)):
        raise CommunicatorError(f"{folder} holds a space, which smpirun -wrapper cannot pass on")
    library = folder / "communicators.so"
    done = subprocess.run(
        [smpicc, "-O1", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=False, capture_output=True,
        text=True, errors="replace",
    )  # fmt: skip
    if done.returncode or not library.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CommunicatorError(f"smpicc failed: {said[-1] if said else done.returncode}")
    (folder / "communicators").mkdir()
    return ["-wrapper", f"env LD_PRELOAD={library} HOPFORGE_COMMUNICATORS={folder / 'communicators'}"]


def add_communicators(trace: Path, noted: Path) -> None:
    """Write the communicators into the texts of a trace: a line for each, and its number behind the calls in it.

    Parameters
    ----------
    trace : Path
        Folder with a text of each rank.
    noted : Path
        What the library wrote: of each rank a file with a line for each collective.

    Raises
    ------
    CommunicatorError
        The calls noted are not those of the trace.
    """
    numbers: dict[str, int] = {}
    texts = {path: path.read_text(encoding="utf-8").splitlines() for path in sorted(trace.glob("*.txt"))}
    for lines in texts.values():
        rank = lines[0].partition(" ")[0] if lines else ""
        path = noted / rank
        calls = path.read_text(encoding="utf-8").splitlines() if rank and path.is_file() else []
        lines[:] = _told(rank, lines, iter(calls), numbers)
    for path, lines in texts.items():
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _told(rank: str, lines: list[str], calls: Iterator[str], numbers: dict[str, int]) -> Iterator[str]:
    known = set()
    for line in lines:
        own, _, call = line.partition(" ")
        name, _, arguments = call.partition(" ")
        if name not in COLLECTIVES:
            yield line
            continue
        noted, _, members = next(calls, "nothing").partition(" ")
        if noted != name:
            raise CommunicatorError(f"rank {rank} calls {name} in the trace where {noted} was noted")
        if not members:
            yield line
            continue
        number = numbers.setdefault(members, len(numbers) + 1)
        if number not in known:
            known.add(number)
            yield f"{own} communicator {number} {members}"
        yield f"{own} {name}@{number} {arguments}"
