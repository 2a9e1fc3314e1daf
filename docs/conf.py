"""How the documentation site is built: ``make docs``, with warnings as errors."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from volumehost import __version__  # noqa: E402  (after the path of the extensions, like every import that docs need)

project = "volumehost"
author = "the volumehost authors"
copyright = "the volumehost authors, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx_click", "contract_reference", "cli_examples", "unreleased_changes"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext"]
default_role = "any"
nitpicky = (
    False  # signatures name types of the standard library, and no inventory is fetched: building needs no network
)
show_warning_types = True
suppress_warnings: list[str] = []
highlight_language = "python"
pygments_style = "friendly"
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist", "attrs_block"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"volumehost {release}"
html_copy_source = False
html_show_sourcelink = False
