"""What a new user runs first: demo, doctor, summary of a file, benchmarks.

May import: all other rooms of sim but reproduce. Read first: `demo.py`.
"""
