"""Input-output-queued routers with times in ns (docs/definitions/router-models.md).

May import: model. Read first: `kernel.py`.
"""
