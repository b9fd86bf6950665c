"""What a routing algorithm is: plan and relation, what it reads, a user's own file; what relations share.

May import: model.network, model.irregular and what lies below. Read first: `plan.py`.
"""
