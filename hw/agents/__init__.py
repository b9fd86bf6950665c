"""What learns inside a switch: the table of Q-adaptive and the inference of an agent.

May import: hw.parts; model. Read first: `q_table.py`.
"""
