"""Store-and-forward routers of whole packets on tori (docs/definitions/torus-router.md).

May import: sim.run and what lies below. Read first: `kernel.py`.
"""
