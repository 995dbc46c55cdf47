"""The table of ``concord.compare``, which shows the columns that decide."""

from __future__ import annotations

import pandas

ERRORS = ("w2", "w2_average")  # the first that has been computed is shown
PRICES = ("gradients", "unicasts", "seconds")


class ComparisonTable(pandas.DataFrame):
    """Results compared, a row each; ``print`` and notebooks show error, interval, price, verdict.

    All columns are there as of any table (``to_string()``), and a part of it shows all of its own.
    """

    def __repr__(self) -> str:
        """Return the columns that decide as text, and the names of the others."""
        shown = self._decide()
        others = ", ".join(map(str, self.columns.difference(shown.columns, sort=False)))
        return f"{shown.to_string(float_format='{:.4g}'.format)}\nfurther columns: {others}"

    def _repr_html_(self) -> str:
        """Return the columns that decide as an HTML table."""
        return str(self._decide().to_html(float_format="{:.4g}".format))

    def _decide(self) -> pandas.DataFrame:
        """Return error, interval, price and verdict of each result; without errors the prices.

        Tied are results whose intervals begin below the end of the nearest one's.
        """
        error = next((name for name in ERRORS if name in self), None)
        if error is None:
            return self.filter(["iterations", "chains", *PRICES])
        table = self.assign(lo=self.get(f"{error}_lo"), hi=self.get(f"{error}_hi"))
        lawful = table["chains"] == 0  # of a law, which has no interval since it needs none
        for end in ("lo", "hi"):
            table[end] = table[end].astype(float).where(~lawful, table[error])
        table["interval"] = [
            f"[{lo:.4g}, {hi:.4g}]" if lo < hi else ""
            for lo, hi in zip(table["lo"], table["hi"], strict=True)
        ]
        known = table[table["lo"].notna()].sort_values(error)
        nearest = known.index[0] if len(known) else None
        tied = known.index[known["lo"] <= known["hi"].iloc[0]] if len(known) else ()
        table["verdict"] = "no interval"
        table.loc[known.index, "verdict"] = "farther"
        table.loc[[*tied], "verdict"] = "tied with the nearest"
        table.loc[table.index == nearest, "verdict"] = "nearest"
        if "diverged" in table:
            table.loc[table["diverged"] > 0, "verdict"] = "diverged"
        return table.filter([error, "interval", *PRICES, "verdict"])
