"""Sphinx makes the site's HTML; its warnings are errors."""

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util import console
from sphinx.util.docutils import docutils_namespace

from concord.errors import ConcordError


def make(source: Path, output: Path, doctrees: Path, settings: Mapping[str, Any]) -> None:
    """Make HTML of a folder of documents."""
    console.nocolor()
    told, warned = io.StringIO(), io.StringIO()
    try:
        with docutils_namespace():  # so that a process can make another
            app = Sphinx(
                *(source, None, output, doctrees, "html"),
                confoverrides=dict(settings),
                status=told,
                warning=warned,
            )
            app.build()
    except SphinxError as error:
        raise ConcordError(f"the site could not be made: {error}") from error
    warnings = warned.getvalue().replace(str(source), "").strip()
    if warnings:
        print(warnings, file=sys.stderr)
        raise ConcordError("the site could not be made: correct what Sphinx warns of above")
