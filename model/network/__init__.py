"""The network simulator, cycle-exact twin of the router (docs/definitions/router.md).

`core` is what every run needs, `parts` what only some runs need, `build` puts a network together, `threads` simulates
one on several cores.

May import: model.lookup, model.topology and what lies below. Read first: `kernel.py`.
"""
