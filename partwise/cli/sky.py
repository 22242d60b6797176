"""``partwise sky``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console

if TYPE_CHECKING:
    from partwise.sky import Chart, Found

__all__ = ["sky"]

PICTURES = (".png", ".svg", ".pdf")


@app.command()
@plain_errors
def sky(
    chart: Annotated[
        Path | None,
        typer.Argument(metavar="[CHART.csv]", help="Points: columns x and y, others are ignored."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="A chart of a random piece of sky instead of a file.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Draw the chart: .png, .svg or .pdf.")
    ] = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="In the picture, the points as they came, on the left.")
    ] = False,
    stars: Annotated[
        Path | None, typer.Option("--stars", help="Write which point is which star to this CSV.")
    ] = None,
    points: Annotated[
        Path | None, typer.Option("--points", help="With --simulate: write the points to this CSV.")
    ] = None,
    field: Annotated[
        float | None,
        typer.Option(help="With --simulate: the width in degrees.  [default: random, 40 to 80]"),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(help="With --simulate: of positions, in widths of it.  [default: 0.002]"),
    ] = None,
    mirrored: Annotated[
        bool | None,
        typer.Option(
            "--mirrored/--not-mirrored",
            help="Whether left and right (or up and down) are exchanged, as where y counts "
            "downwards.  [default: found out]",
        ),
    ] = None,
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Which constellations are on a chart of the sky, and which point is which star?

    The chart is a list of points on a picture 30 to 100 degrees wide. Where it looks, which way is
    up, its unit, how precise it is, and which points are no stars at all is found out.
    """
    from partwise import sky as module
    from partwise._checks import InputError
    from partwise.sky.files import read_chart, write_chart, write_stars

    if (chart is None) != simulate:
        raise InputError("give either a CHART.csv or --simulate.")
    if not simulate and any(option is not None for option in (points, field, noise)):
        raise InputError("--points, --field and --noise go with --simulate; leave them out.")
    if beside and out is None:
        raise InputError("--beside goes with a picture; give its name with -o, too.")
    if out is not None and out.suffix.lower() not in PICTURES:
        raise InputError(f"{out}: pictures are .png, .svg or .pdf; give such a name.")
    truth = None
    if chart is None:
        truth = module.simulate(
            seed, field=field, noise=0.002 if noise is None else noise, mirrored=bool(mirrored)
        )
        where = truth.points
        if points is not None:
            write_chart(points, where)
    else:
        where = read_chart(chart)
    found = module.find(where, mirrored=mirrored, seed=seed)
    if out is not None:
        from partwise.files._common import replacing
        from partwise.plotting.sky import write_sky

        with replacing(out) as part:
            write_sky(part, found, beside, out.suffix.lower()[1:])
    if stars is not None:
        write_stars(stars, found)
    if as_json:
        typer.echo(json.dumps(found.to_dict() | _truth(truth)))
    else:
        _print(found, truth)


def _truth(chart: Chart | None) -> dict[str, Any]:
    if chart is None:
        return {}
    return {"truth": {"field": chart.field, "whole": chart.whole(), "partial": chart.partial()}}


def _print(found: Found, truth: Chart | None) -> None:
    """The constellations as a table, where the chart looks, and with --simulate what is true."""
    from rich.table import Table

    from partwise.sky.found import NOTHING

    out = console()
    if found.found:
        table = Table(box=None, pad_edge=False)
        for heading in ("constellation", "in the field", "probability", "stars seen"):
            table.add_column(heading, justify="left" if heading == "constellation" else "right")
        for c in found.constellations:
            seen = f"{(c.rows >= 0).sum()} of {len(c.rows)}"
            here = ("whole", c.whole) if c.is_whole else ("part", c.probability)
            table.add_row(c.name, here[0], f"{here[1]:.3f}", seen)
        out.print(table)
        ra, dec = found.pointing
        out.print(
            f"\n{(found.stars >= 0).sum()} of {len(found.points)} points are stars; "
            f"right ascension {ra:.1f}°, declination {dec:+.1f}°, roll {found.roll:.1f}°, "
            f"field {found.field:.1f}°{', mirrored' if found.mirrored else ''}; "
            f"noise {found.noise / found.width:.2%} of the width",
            highlight=False,
        )
    else:
        out.print(NOTHING, highlight=False)
    if truth is not None:
        wanted = set(truth.whole())
        given = {c.figure.abbreviation for c in found.constellations if c.is_whole}
        out.print(
            f"truth: {len(wanted)} constellations are whole; {len(wanted & given)} of them found, "
            f"{len(given - wanted)} more said to be",
            highlight=False,
        )
