"""Measurements of partwise, and the slow, obvious reference that they are measured against."""
