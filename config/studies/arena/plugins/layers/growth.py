"""With which exponent a line grows over a label of numbers, beside its name."""

from dataclasses import replace

import numpy as np

from concord_studies import scores
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Line, LineOverLabel


class Params(Layer):
    """The fitted exponent of each line over a label, with its 95 % interval."""

    def show_line(self, line: Line) -> Line:
        """Return the line with the exponent in its text."""
        if not isinstance(line, LineOverLabel):
            return line
        if (fit := scores.exponent(line.estimate.iteration, line.sets)) is None:
            return line
        p, half = fit
        says = f"{p:.1f}" if np.isnan(half) else f"{p:.2f} ± {max(half, 0.01):.2f}"
        return replace(line, text=f"{line.text} ({says})")
