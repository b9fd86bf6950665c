"""Who gets an output: requests for virtual channels and for the switch, and the allocators that answer them.

May import: hw.parts; model. Read first: `allocator.py`.
"""
