"""Configuration of Sphinx: API pages, the user guide and the gallery, built without network.

Build with ``pip install -e ".[docs]"`` and ``sphinx-build -W -b html docs docs/_build/html``.
"""

import sklearn_ical

project = "sklearn_ical"
author = "sklearn_ical developers"
copyright = author
version = release = sklearn_ical.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say types and shapes
numpydoc_show_class_members = False  # the class template lists members

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"/benchmarks/",
    "backreferences_dir": None,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "alabaster"
html_theme_options = {
    "description": "Which rows should be labeled next?",
    "page_width": "1060px",
    "sidebar_width": "240px",
}
html_show_sourcelink = False
