"""The documentation site: Sphinx over the Markdown pages of this folder (`make docs`).

The Python blocks of a page are run when it is read (tools/pages.py), the reference is written from docstrings and
declarations of parameters (tools/reference.py). Nothing is loaded from elsewhere, so the site works from a folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tools"), str(HERE.parent)]  # the blocks of a page draw the harness's tables
os.environ.setdefault("MPLBACKEND", "agg")

import docstrings  # noqa: E402
import hinge  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402

project = "hinge"
author = "The hinge founders"
project_copyright = "The hinge founders, BSD-3-Clause"
release = hinge.__version__
version = ".".join(release.split(".")[:2])

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "_figures"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
default_role = "code"
suppress_warnings = ["misc.highlighting_failure"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = f"hinge {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse in a folder
html_context = {"default_mode": "auto"}
html_theme_options: dict[str, Any] = {
    "logo": {"text": f"hinge {version}"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
# Where several versions are published side by side, a list of them (JSON, next to their folders) makes a menu. A browser
# does not read such a list from a folder, so a plain `make docs` has none.
if versions := os.environ.get("HINGE_DOCS_VERSIONS"):
    html_theme_options["switcher"] = {"json_url": versions, "version_match": version}
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher"]
html_sidebars: dict[str, list[str]] = {"index": [], "gallery": [], "changes": []}


def show_outputs(app: Any, name: str, source: list[str]) -> None:
    """Run the blocks of a page and show what they print and draw."""
    path = HERE / f"{name}.md"
    if os.environ.get("HINGE_DOCS_RUN", "1") != "0" and path.exists() and pages.blocks(source[0]):
        outputs = pages.run_page(source[0], str(path))[1]
        source[0] = pages.with_outputs(source[0], outputs, HERE / "_figures", name)


def escape_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are written for people in an editor: make reStructuredText of them, before napoleon reads them."""
    public = name.removeprefix("hinge.")
    if what in ("class", "function") and public in docstrings.public_names():
        lines[:] = docstrings.written_out(public, lines)
    lines[:] = reference.to_restructured_text(lines)


def write_reference(app: Any) -> None:
    """The pages of the reference, before Sphinx looks for pages."""
    reference.write(HERE / "reference")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_reference, priority=100)
    app.connect("source-read", show_outputs)
    app.connect("autodoc-process-docstring", escape_docstring, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
