"""Inference as a film: ``film`` draws the frames of one scene, ``writing`` makes GIF or MP4."""

from partwise.movies.film import inference_frames, thinned
from partwise.movies.writing import write_movie

__all__ = ["inference_frames", "thinned", "write_movie"]
