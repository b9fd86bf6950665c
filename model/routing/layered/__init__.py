"""Routing on networks in stages: trees and butterflies.

May import: model.routing.contract and what lies below. Read first: `tree.py`.
"""
