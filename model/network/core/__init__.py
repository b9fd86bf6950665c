"""What every simulated network needs: records, state, events, sources, allocators.

May import: model.kernel, model.topology. Read first: `layouts.py`.
"""
