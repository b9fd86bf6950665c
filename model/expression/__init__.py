"""Keys by an expression: a small language of whole numbers with known widths (docs/definitions/key-expressions.md).

May import: model.kernel, model.errors. Read first: `golden.py`.
"""
