"""The command `smpirun` of SimGrid 3.32: what it is called with, when its ranks end, and what goes wrong."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.parts.program_arrays import ProgramError
from hopforge.sim.programs.simgrid import MAX_FULL_HOSTS

#: ranks, and lines of SimGrid's own words, that an error shows
SHOWN = 8
_SEPARATOR = "\x1f"
_FORMAT = _SEPARATOR.join(("%p", "%c", "%a", "%.17r", "%m%n"))
_ENDED = re.compile(r"<(\d+)> Process left the game")
_STUCK = re.compile(r"Actor \d+ \((\d+)@[^)]*\): waiting")
#: what smpirun prints when a program fails: its command line, and a status that we tell
_OWN_WORDS = re.compile(r"--cfg=smpi/privatization|^Execution failed with code")
_BACKTRACE = re.compile(r"Backtrace \(|\s+->\s+\d+#")

Progress = Callable[[int, int], None]


class Ended(NamedTuple):
    """A finished run: when each rank was at its end, float64[rank] in seconds, and the exit status."""

    ended: NDArray[np.float64]
    status: int


class SmpiError(UserError):
    """SimGrid is missing, cannot do what the configuration says, or failed: its own words."""


def smpirun_path() -> str:
    """Return where `smpirun` is.

    Raises
    ------
    SmpiError
        It is not installed.
    """
    found = shutil.which("smpirun")
    if found is None:
        raise SmpiError("app.backend: simgrid needs smpirun, which is not installed (apt-get install libsimgrid-dev)")
    return found


def check_simgrid(config: Config, hosts: int) -> None:
    """Refuse a program on so many hosts that SimGrid cannot run here.

    Raises
    ------
    SmpiError
        It is not installed, has no such model, or does not get the routes of so many hosts.
    """
    smpirun_path()
    settings(config)
    check_hosts(hosts)


def check_hosts(hosts: int) -> None:
    """Refuse a program on more hosts than a platform has routes for."""
    if hosts > MAX_FULL_HOSTS:
        raise SmpiError(f"app.backend: SimGrid gets the routes of at most {MAX_FULL_HOSTS} hosts, not {hosts}")


def several_links(config: Config) -> bool:
    """Whether hosts have several links."""
    return getattr(config.topology, "host_links", 1) > 1


def settings(config: Config) -> list[str]:
    """Return SimGrid's settings for the model of engine `flow`: sharing, thresholds, times.

    Raises
    ------
    SmpiError
        SimGrid's model has no such setting.
    """
    app = config.app
    if several_links(config):
        raise SmpiError("topology.host_links: SimGrid gets one link of a host; app.backend: embedded has all")
    for key in app.embedded_only:
        raise SmpiError(f"app.{key}: SimGrid has no {getattr(app, key)}; app.backend: embedded has")
    return [
        "network/model:CM02",
        "network/crosstraffic:0",
        "surf/precision:1e-12",
        f"network/latency-factor:{app.latency_factor!r}",
        f"network/bandwidth-factor:{app.bandwidth_factor!r}",
        f"network/TCP-gamma:{app.tcp_window_bytes or 0}",
        f"smpi/async-small-thresh:{app.buffered_bytes}",
        f"smpi/send-is-detached-thresh:{app.eager_bytes}",
        "network/loopback-bw:1e18",
        "network/loopback-lat:0",
    ]


def run_smpi(
    arguments: Sequence[str], ranks: int, folder: Path, progress: Progress | None = None, *, show: bool = False
) -> Ended:
    """Call `smpirun`.

    Parameters
    ----------
    arguments : sequence of str
        Everything but the format of the log.
    ranks : int
        Number of ranks.
    folder : Path
        Where it runs.
    progress : callable, optional
        Called with the ranks that are at their end, and all.
    show : bool
        Pass on what the ranks print.

    Raises
    ------
    SmpiError
        It failed: its own message.
    ProgramError
        Ranks wait for each other: their numbers.
    """
    log = [f"--log=root.fmt:{_FORMAT}", "--log=root.thres:warning", "--log=ker_engine.thres:info"]
    command = [smpirun_path(), "-np", str(ranks), *log, "--log=smpi_process.thres:debug", *arguments]
    reader = _LogReader(ranks, progress, show)
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", start_new_session=True,
    ) as process:
        printed = threading.Thread(target=reader.skim, args=(process.stdout,))
        printed.start()
        try:
            assert process.stderr is not None
            reader.read(process.stderr)
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            printed.join()
    reader.check(code)
    return Ended(reader.ended, code)


class _LogReader:
    """Reads the log while the command runs."""

    def __init__(self, ranks: int, progress: Progress | None, show: bool) -> None:
        self.ended = np.full(ranks, -1.0)
        self.stuck: list[int] = []
        self.words: list[str] = []
        self._progress, self._show = progress, show

    def skim(self, stream: IO[str] | None) -> None:
        """Read what the ranks and smpirun itself print."""
        for line in stream or ():
            if not _OWN_WORDS.search(line):
                self._other(line, sys.stdout)

    def _other(self, line: str, shown_on: TextIO) -> None:
        if _BACKTRACE.match(line):
            return
        if self._show:
            shown_on.write(line)
            shown_on.flush()
        else:
            self._keep(line)

    def _keep(self, line: str) -> None:
        if line.strip():
            self.words = [*self.words[1 - SHOWN :], line.rstrip()]

    def read(self, stream: IO[str]) -> None:
        """Read the log."""
        for line in stream:
            parts = line.rstrip("\n").split(_SEPARATOR)
            if len(parts) != 5:
                self._other(line, sys.stderr)
                continue
            priority, category, _, clock, text = parts
            if category == "smpi_process":
                if ended := _ENDED.search(text):
                    self.ended[int(ended[1]) - 1] = float(clock)
                    if self._progress is not None:
                        self._progress(int((self.ended >= 0).sum()), len(self.ended))
            elif waiting := _STUCK.search(text):
                self.stuck.append(int(waiting[1]))
            elif priority in ("WARNING", "ERROR", "CRITICAL"):
                self._keep(text)

    def check(self, code: int) -> None:
        """Raise what went wrong."""
        if self.stuck:
            named = ", ".join(map(str, self.stuck[:SHOWN]))
            more = f" and {len(self.stuck) - SHOWN} more" if len(self.stuck) > SHOWN else ""
            raise ProgramError(
                f"workload: the program cannot end: {len(self.stuck)} of {len(self.ended)} ranks wait for ever: rank"
                f"{'s' if len(self.stuck) > 1 else ''} {named}{more}"
            )
        if (self.ended < 0).any():
            said = "\n".join(self.words) or ("see above" if self._show else "it said nothing")
            raise SmpiError(f"smpirun failed (exit status {code}):\n{said}")
