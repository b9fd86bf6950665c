"""What is on a board, and how a host talks to it (docs/definitions/board-protocol.md).

May import: model.lookup and what lies below. Read first: `protocol.py`.
"""
