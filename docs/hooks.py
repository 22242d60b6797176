"""For mkdocs: pages that are yet to come; the roles of docstrings as the plain names they are."""

import re
from pathlib import Path
from typing import Any

ROLE = re.compile(r":(?:func|class|mod|data|meth|attr):<code>~?(?:[\w.]+\.)?(\w+)</code>")


def on_config(config: Any) -> Any:
    """Without the entries whose page is not there."""
    config["nav"] = _there(config["nav"], Path(config["docs_dir"]))
    return config


def _there(nav: Any, docs: Path) -> list[Any]:
    out = []
    for entry in nav:
        ((title, what),) = entry.items()
        if not isinstance(what, str):
            out.append({title: _there(what, docs)})
        elif (docs / what).is_file():
            out.append(entry)
    return out


def on_page_content(html: str, **_: object) -> str:
    """Names without their role and module."""
    return ROLE.sub(r"<code>\1</code>", html)
