"""Constellations in the sky: which stars and which constellations are on a chart?

``catalogue.py`` has the stars and the stick figures, ``projection.py`` the camera, ``charts.py``
simulates. ``triangles.py`` and ``picture.py`` propose cameras, ``refining.py`` climbs from there,
``scoring.py`` gives the evidence, ``searching.py`` puts them together; ``window.py`` says what
lies in the field, and ``finding.py`` answers.

>>> import partwise as pw
>>> found = pw.sky.find(pw.sky.simulate(seed=1).points)
"""

from partwise.sky.catalogue import Catalogue, Figure, Star, catalogue
from partwise.sky.charts import Chart, simulate
from partwise.sky.finding import find
from partwise.sky.found import Constellation, Found
from partwise.sky.projection import Camera

__all__ = [
    "Camera",
    "Catalogue",
    "Chart",
    "Constellation",
    "Figure",
    "Found",
    "Star",
    "catalogue",
    "find",
    "simulate",
]
