"""DQN-Routing without a network: agent, training, decisions, acknowledges; an agent's network in whole numbers.

May import: errors, input_file, kernel, numbers, output, requirements. Read first: `learning.py`.
"""
