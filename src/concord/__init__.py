"""Concord: reproduce and compare decentralized Bayesian samplers.

``sample`` runs a sampler, ``law`` computes its exact distribution where it is affine; ``problems``
and ``Problem`` make targets of your own data and gradients, ``network`` the graph between agents;
``w2``, ``bias2`` and ``compare`` say how far a result is from the posterior. docs/python.md shows
them at work.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# Where each name lives. As text, imported when asked for: importing the package stays fast, and
# results do not depend on the code of what they do not use (digests of code follow imports).
_PUBLIC = {
    "ConcordError": "errors",
    "DivergenceWarning": "errors",
    "Gaussian": "laws.gaussian",
    "Problem": "problems._functions",
    "Sampler": "sampler",
    "bias2": "library.distances",
    "compare": "library.distances",
    "from_numpyro": "problems._numpyro",
    "from_pymc": "problems._pymc",
    "from_shards": "problems._models",
    "law": "library.sampling",
    "load": "library.sampling",
    "load_run": "library.sampling",
    "network": "networks.own",
    "problems": "problems",
    "recommend": "library.recommend",
    "sample": "library.sampling",
    "w2": "library.distances",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_PUBLIC[name]}")
    return module if name == "problems" else getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
