"""Links of several wavelengths: what `hopforge wavelengths` computes."""

import os

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Result, called
from hopforge.sim.hits.wavelengths import Wavelengths
from hopforge.sim.start.preparation import prepare

__all__ = ["wavelengths"]


def wavelengths(config: Configuration | str | os.PathLike[str], *, progress: Progress = True) -> Result:
    """Compare one lookup engine for a link of several wavelengths with one for each, as ``hopforge wavelengths``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is run, or its file; section `wavelengths` says what is compared.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    Result
        `table` has a row for each arrangement, ``tables["cheapest"]`` one for each rate of a link.

    Raises
    ------
    UserError
        The configuration is no good for it.
    """
    with called(configuration(config), "wavelengths", "wavelengths") as call:
        found = Wavelengths(call.config, prepare("wavelengths", call.config))
        with shown(progress, found.unit) as advance:
            found.run(advance)
    return Result(call, found, tables=("arrangements",))
