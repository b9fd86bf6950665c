"""Rule tables and the caches before them, prefixes and ternary rules (docs/definitions/rule-caches.md).

May import: model.kernel, model.numbers and what lies below. Read first: `rule_table.py`.
"""
