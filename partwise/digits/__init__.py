"""Digits that are turned: do their parts turn along, and can they be found again?

``mnist``: the pictures. ``turning``: on a canvas, in any turn. ``strokes``: ends, corners and
junctions. ``vocabulary``: templates of digits. ``matching``: which digit, which part is which.
``naming``, ``agreement``: labels of pixels, and how far they turn with the picture.
"""
