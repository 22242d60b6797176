"""The page of ``make reproduce``: one file of HTML that needs nothing beside it.

``page`` gathers what the experiments have written into a folder and sets it with the template and
style beside it; the page shows what exists.
"""

from partwise.report.page import write_page

__all__ = ["write_page"]
