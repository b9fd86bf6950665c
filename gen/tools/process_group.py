"""Programs that start others: where hopforge is ended, so are they all, and what they would leave behind goes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["in_group", "run_in_group"]

_PATIENCE_S = 0.5
"""How long programs have to delete their temporary files, as compilers and make do, before they are killed."""


@contextmanager
def in_group(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own; an exception in the block ends it and all that it has started.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    **options
        Of `subprocess.Popen`; what it prints is text.
    """
    with subprocess.Popen(command, text=True, errors="replace", start_new_session=True, **options) as process:
        try:
            yield process
        except BaseException:
            _end(process)
            raise


def run_in_group(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str], output: int | IO[str],
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a program as `in_group` and return its status and what it printed, both streams together.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    folder : Path
        Where it runs.
    environment : mapping
        All variables of its environment.
    output : file or int
        Where both streams go; ``subprocess.PIPE``: to ``stdout`` of what is returned.
    timeout_s : float, optional
        Limit of wall-clock time, in seconds.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer; it and all that it had started have been ended.
    """
    with in_group(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    ) as process:
        out, _ = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(list(command), process.returncode, out)


def _end(process: subprocess.Popen[str]) -> None:
    """End a session: asked first, then killed."""
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGTERM)
        last = time.monotonic() + _PATIENCE_S
        while time.monotonic() < last:
            process.poll()  # else its remains count as a member
            os.killpg(process.pid, 0)
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
