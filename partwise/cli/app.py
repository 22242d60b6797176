"""The Typer application, and one line instead of a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer

__all__ = ["app", "main", "plain_errors"]

P = ParamSpec("P")
R = TypeVar("R")

app = typer.Typer(
    name="partwise",
    help="Recognise objects from their parts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """The entry point ``partwise``."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(_interrupted())


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """One line instead of a traceback: what is wrong with the input, or that it was interrupted."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from partwise._checks import InputError

        try:
            return command(*args, **kwargs)
        except InputError as error:
            typer.echo(f"partwise: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(_interrupted()) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            typer.echo(f"partwise: {where}{error.strerror or error}; check the path.", err=True)
            raise typer.Exit(2) from None

    return run


def _interrupted() -> int:
    typer.echo("partwise: interrupted.", err=True)
    return 130
