"""Keys of a file that its program does not read: a schedule of GOAL has its own messages, a trace has no cpus.

Keys that an engine ignores whatever the program is are named by `model.config.uses`.
"""

from collections.abc import Iterable, Iterator

from hopforge.model.config import Config
from hopforge.model.config.jobs import JobsWorkload
from hopforge.model.config.workload import ChakraWorkload, ProgramWorkload, TraceWorkload, TrainingWorkload
from hopforge.sim.traffic.scheduled import is_schedule

#: of `app.loggops`: the network takes their place where there is one
_OF_NO_NETWORK = ("L", "G")


def unread_program_keys(configs: Iterable[Config]) -> list[str]:
    """Return the keys that the files give and that `hopforge app` does not read with their program, in order.

    Parameters
    ----------
    configs : iterable of Config
        A configuration and its variants; a key that is read in one of them is read.
    """
    given: dict[str, bool] = {}
    for config in configs:
        for workload, prefix in _programs(config):
            for key, read in _keys(config, workload):
                where = key.replace("workload", prefix, 1)
                given[where] = given.get(where, False) or read
    return [key for key, read in given.items() if not read]


def _programs(config: Config) -> Iterator[tuple[ProgramWorkload, str]]:
    """Yield the programs that may be schedules, each with its key."""
    found: list[tuple[object, str]] = [(config.workload, "workload")]
    if isinstance(config.workload, JobsWorkload):
        found = [(job.program, f"workload.jobs[{number}].program") for number, job in enumerate(config.workload.jobs)]
    for workload, key in found:
        if isinstance(workload, (TraceWorkload, ChakraWorkload, TrainingWorkload)):
            yield workload, key


def _keys(config: Config, workload: ProgramWorkload) -> Iterable[tuple[str, bool]]:
    """Yield the keys in question that the file gives, and whether they are read."""
    schedule, network = is_schedule(workload), config.app.engine != "loggops"
    if "collectives" in workload.model_fields_set:
        yield "workload.collectives", not schedule or not isinstance(workload, TraceWorkload)
    if "loggops" not in config.app.model_fields_set:
        return
    if not schedule:
        yield "app.loggops", not network
        return
    for key in _OF_NO_NETWORK:
        if key in config.app.loggops.model_fields_set:
            yield f"app.loggops.{key}", not network
