"""Any algorithm on what it does not know of: parallel and aggregated links, classes of messages and traffic.

May import: model.routing.contract and what lies below. Read first: `configured.py`.
"""
