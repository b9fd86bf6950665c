"""Programs of ranks (traces, calls, collectives, operations), and logs of jobs.

May import: model.config. Read first: `program.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.workload")
