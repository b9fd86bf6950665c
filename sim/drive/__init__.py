"""What drives a bench: stimulus, recorded replays, players, runners of simulators.

May import: gen, hw, model. Read first: `replay.py`.
"""
