"""Which links jobs use and share, on the routes of engine flow, and which jobs cannot disturb each other."""

from typing import NamedTuple

import numpy as np

from hopforge.sim.programs.app_setup import AppSetup

__all__ = ["JobLinks", "job_links"]


class JobLinks(NamedTuple):
    """Links of jobs.

    Attributes
    ----------
    used, shared : list of int
        Of each job: links that its messages use, from routers on and to hosts; of these also used by other jobs.
    groups : list of list of int
        Jobs that share links, directly or through others, in increasing order; every job is in one of them.
    """

    used: list[int]
    shared: list[int]
    groups: list[list[int]]


def job_links(setup: AppSetup) -> JobLinks:
    """Return what links the jobs of a setup use; links from hosts belong to one job anyway."""
    jobs, topology, routes = setup.jobs, setup.topology, setup.routes
    assert jobs is not None, "prepared with jobs"
    assert routes is not None, "of engine flow"
    count = np.zeros(topology.routers * topology.max_ports, np.int32)
    links = []
    for job in jobs.jobs:
        source, destination = (ends.astype(np.int64) for ends in (job.placed.source_host, job.placed.destination_host))
        pairs = np.unique((source * topology.hosts + destination)[source != destination])
        paths = routes.paths(pairs // topology.hosts, pairs % topology.hosts)
        links.append(np.unique(paths.router.astype(np.int64) * topology.max_ports + paths.output))
        count[links[-1]] += 1
    return JobLinks(
        [len(each) for each in links], [int((count[each] > 1).sum()) for each in links],
        _groups([each[count[each] > 1].tolist() for each in links]),
    )  # fmt: skip


def _groups(shared: list[list[int]]) -> list[list[int]]:
    """Return which jobs hang together by links.

    >>> _groups([[1, 2], [], [2], [5], [5]])
    [[0, 2], [1], [3, 4]]
    """
    parent = list(range(len(shared)))

    def root(job: int) -> int:
        while parent[job] != job:
            parent[job] = parent[parent[job]]
            job = parent[job]
        return job

    owner: dict[int, int] = {}
    for job, links in enumerate(shared):
        for link in links:
            first, second = sorted((root(owner.setdefault(link, job)), root(job)))
            parent[second] = first
    found: dict[int, list[int]] = {}
    for job in range(len(shared)):
        found.setdefault(root(job), []).append(job)
    return list(found.values())
