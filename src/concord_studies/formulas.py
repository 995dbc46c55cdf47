"""Formulas within sentences: "gamma_i", "(k + 1)^-delta_2" or "x*" as mathematics.

Texts of studies have formulas as one types them. A formula is a Greek letter by its name, whatever
has an index or a power, and a letter with a star: what no word can be.
"""

import re

_NAMES = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda"),
    *("mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
    *("Delta", "Sigma"),
)
_GREEK = dict(zip(_NAMES, "αβγδεζηθκλμνξπρστφχψωΔΣ", strict=True))
_LETTERS = "|".join(_GREEK)
_NAME = rf"(?:{_LETTERS}|[A-Za-z])(?![A-Za-z])"
_INDEX = rf"_(?:{_LETTERS}|bar|max|min|[A-Za-z0-9]{{1,2}})(?![A-Za-z0-9_])"
_SIMPLE = rf"\^-?(?:{_NAME}(?:{_INDEX})?|\d+(?:\.\d+)?)(?![\^*])"
_INSIDE = rf"(?:{_INDEX}|{_SIMPLE}|[A-Za-z0-9 .,+\-/=|<>])"
_GROUP = rf"\((?:{_INSIDE}|\({_INSIDE}*\))*\)"
_POWER = rf"(?:{_SIMPLE}|\^-?{_GROUP}(?!\^))"
_WITH_SCRIPT = rf"(?:{_NAME}(?:{_INDEX})?|\d+|{_GROUP}){_POWER}|{_NAME}{_INDEX}"
# A letter alone is no part of a word, a path or code: "gamma-ray", "runs/eta.csv".
_ALONE = rf"(?<![A-Za-z]/)(?:{_LETTERS})(?![\w`^]|-[A-Za-z]|[./]\w)"
_STAR = rf"{_NAME}\*(?![*\w])"
_FORMULA = re.compile(
    rf"\$\\?(?P<tex>{_WITH_SCRIPT}|{_LETTERS})\$"  # as figures have them
    rf"|(?<![\w.`\\$^*])(?<![A-Za-z]-)(?:{_WITH_SCRIPT}|{_STAR}|{_ALONE})"
    rf"|(?<=[)\]|]){_POWER}"
)


def split_at_formulas(text: str) -> list[tuple[str, str]]:
    """Return the parts of a text in order, each as (words, formula in LaTeX), one of them empty.

    Greek letters are Unicode's, so that who reads the source reads them too.

    >>> split_at_formulas("a step of gamma_2 n^-0.5")
    [('a step of ', ''), ('', 'γ_2'), (' ', ''), ('', 'n^{-0.5}')]
    """
    parts, start = [], 0
    for match in _FORMULA.finditer(text):
        formula = _write_latex(match["tex"] or match[0])
        parts += [(text[start : match.start()], ""), ("", formula)]
        start = match.end()
    return [part for part in (*parts, (text[start:], "")) if any(part)]


def _write_latex(typed: str) -> str:
    """Return a formula as typed in LaTeX: powers and indices in braces, letters of Unicode."""
    latex = re.sub(r"\*$", "^*", typed)
    latex = re.sub(_POWER, lambda power: f"^{{{power[0][1:]}}}", latex)
    latex = re.sub(r"^(?=\^)", "{}", latex)  # of what stands before it in words
    latex = re.sub(rf"({_NAME})_bar", r"\\bar{\1}", latex)
    latex = re.sub(r"_(max|min)(?![A-Za-z])", r"_{\\\1}", latex)
    latex = re.sub(r"_([A-Za-z0-9]{2,})", r"_{\1}", latex)
    return re.sub(rf"(?<![A-Za-z])(?:{_LETTERS})(?![A-Za-z])", lambda name: _GREEK[name[0]], latex)
