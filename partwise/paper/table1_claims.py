"""What sec. 7.1.2 says in words, and what :mod:`partwise.paper.table1` found of it."""

from __future__ import annotations

from collections.abc import Iterator

from partwise.paper.published import DEGRADES, T_TESTS, TABLE1_BETA
from partwise.paper.tables import Claim, Grid, Row

__all__ = ["claims", "said", "sign_of", "title_of"]

SIGNIFICANT = 0.05
"""The level of the tests."""

TITLES = {
    "ccae": "CCAE",
    "ccae-recorded": "CCAE, recorded",
    "gmm": "GCM-GMM",
    "ds": "GCM-DS",
    "ransac": "RANSAC",
}


def title_of(method: str) -> str:
    """The name of a method in tables."""
    return TITLES.get(method, method)


def sign_of(metric: str) -> int:
    """1 where more of it is better, else -1."""
    return -1 if metric == "variation_of_information" else 1


def said(a: str, b: str) -> str | None:
    """What the paper says about the t-test between two methods, if anything."""
    if (a, b) not in T_TESTS:
        return None
    bound = T_TESTS[a, b]
    return "not significant" if bound is None else f"p < {bound:.0e}"


def claims(rows: list[Row], tests: list[Row]) -> Iterator[Grid]:
    """What sec. 7.1.2 says in words, on the scenes of the summary."""
    source, lines = tests[-1]["source"] if tests else "", []
    here = [r for r in rows if (r["source"], r["protocol"]) == (source, "published")]
    table = {
        (r["method"], r["sigma"], r["metric"]): r["ours"] * sign_of(r["metric"])
        for r in here
        if r["beta"] in (None, TABLE1_BETA)
    }
    for better, others in (("ds", ("ccae", "gmm")), ("ransac", ("ccae", "gmm", "ds"))):
        won = [
            table[better, sigma, metric] > value
            for (method, sigma, metric), value in table.items()
            if method in others and (better, sigma, metric) in table
        ]
        text = f"{title_of(better)} beats {', '.join(map(title_of, others))} in every figure"
        lines.append([text, Claim(f"in {sum(won)} of {len(won)}", all(won))])
    for (a, b), bound in T_TESTS.items():
        values = [
            t["p_value"]
            for t in tests
            if (t["source"], t["protocol"], t["methods"]) == (source, "published", [a, b])
        ]
        text = f"{title_of(a)} and {title_of(b)}, paired t-tests at σ = 0: {said(a, b)}"
        if values:
            holds = min(values) > SIGNIFICANT if bound is None else max(values) < bound
            found = ", ".join(f"{p:.0e}" for p in values)
            lines.append([text, Claim(f"p = {found} (SA, ARI, VI)", holds)])
    for method in ("ds", "gmm"):
        swept = {
            r["beta"]: r["ours"]
            for r in here
            if (r["method"], r["metric"], r["sigma"]) == (method, "scene_accuracy", 0.0)
        }
        beyond = {beta: value for beta, value in swept.items() if beta > DEGRADES}
        if DEGRADES in swept and beyond:
            text = f"{title_of(method)} degrades where β starts above {DEGRADES:g}"
            found = ", ".join(
                f"{v:.3f} at {b:g}"
                for b, v in sorted({DEGRADES: swept[DEGRADES], **beyond}.items())
            )
            lines.append(
                [text, Claim(f"scene accuracy {found}", max(beyond.values()) < swept[DEGRADES])]
            )
    if lines:
        yield Grid("Section 7.1.2, in words", ["the paper says", "measured"], lines)
