"""One run of the network simulator on several cores (docs/definitions/threads.md): the same results, to the bit.

May import: model.network.core, model.network.parts and what lies below. Read first: `crew.py`.
"""
