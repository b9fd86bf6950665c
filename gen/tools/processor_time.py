"""Programs with a limit of processor time, theirs and of all that they start: a busy machine does not end them."""

import os
import resource
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hopforge.gen.tools.process_group import in_group

__all__ = ["run_within"]

_POLL_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")
_BEYOND_S = 30
"""What the system's own limit allows beyond ours; it ends a program whose watcher was killed."""


def run_within(command: Sequence[str], folder: Path, limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run a program with `folder` as working directory and return its status and what it printed.

    Its temporary files lie in a folder of their own, which goes with it: what is ended cannot delete them, and yosys
    would share a cache of cell libraries with all other processes of the machine.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    folder : Path
        Where it runs.
    limit_s : float
        Processor time in seconds. Where the system does not tell it (no ``/proc``): wall-clock time.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer; it and all that it had started have been ended. `output` is what it had printed, in bytes.
    """
    with (
        TemporaryDirectory() as scratch,
        in_group(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": scratch}
        ) as process,
    ):
        waited = 0.0
        with suppress(AttributeError, OSError):  # not Linux; it has just ended
            most = int(limit_s) + _BEYOND_S
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (most, most))
        while True:
            step = min(_POLL_S, limit_s)
            try:
                out, err = process.communicate(timeout=step)
            except subprocess.TimeoutExpired as late:
                waited += step
                used = processor_seconds(process.pid)
                if (waited if used is None else used) >= limit_s:
                    raise subprocess.TimeoutExpired(list(command), limit_s, late.output) from None
            else:
                return subprocess.CompletedProcess(list(command), process.returncode, out, err)


def processor_seconds(session: int) -> float | None:
    """Processor time of all processes of a session, the ended children of living ones included; None: not known."""
    if not Path("/proc/self/stat").exists():
        return None
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:  # man proc: field 6, and the times of fields 14 to 17
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS
