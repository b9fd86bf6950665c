"""Register maps in the languages of other tools: SystemRDL, CMSIS-SVD, C.

May import: hw, model. Read first: `maps.py`.
"""
