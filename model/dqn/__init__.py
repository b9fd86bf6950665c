"""DQN-Routing without a network: the agent (network, training, replay), its decisions, and the table of routed packets.

May import: errors, input_file, kernel, numbers, output, requirements. Read first: `settings.py`, then `agents.py`.
"""
