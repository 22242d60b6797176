"""The command line: parse, call, print. The work is in the modules that the commands import.

One file a group of commands; importing it registers them. Heavy imports happen inside the
commands, so that ``partwise --help`` is quick.
"""

from partwise.cli import faces, learn, movie, recognise, reproduce, simulate, sky, train
from partwise.cli.app import app, main

__all__ = [
    "app",
    "faces",
    "learn",
    "main",
    "movie",
    "recognise",
    "reproduce",
    "simulate",
    "sky",
    "train",
]
