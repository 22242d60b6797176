"""For mkdocs: the roles of docstrings, :func:`partwise.infer`, as the plain names that they are."""

import re

ROLE = re.compile(r":(?:func|class|mod|data|meth|attr):<code>~?(?:[\w.]+\.)?(\w+)</code>")


def on_page_content(html: str, **_: object) -> str:
    """Names without their role and module."""
    return ROLE.sub(r"<code>\1</code>", html)
