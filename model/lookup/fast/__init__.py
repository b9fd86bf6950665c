"""The golden lookup engine as a numba kernel: the same machine as `model.lookup.golden`, for long runs.

State lives in arrays (`EngineState`); the cycle (`cycle_of`) computes the outputs of one cycle and moves on; `deep.py`
is that of engines of depth 5 to 8. Tested equal to the golden engines in every cycle. 64-bit words are kept as int64
bit patterns.

May import: model.lookup and what lies below. Read first: `kernel.py`.
"""
