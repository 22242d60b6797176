"""Crowds: scenes of many templates, an unknown number of objects, missing parts and clutter."""

from partwise.crowds.scoring import CrowdScore, score_crowd
from partwise.crowds.simulating import crowd_model, simulate_clutter, simulate_crowd

__all__ = ["CrowdScore", "crowd_model", "score_crowd", "simulate_clutter", "simulate_crowd"]
