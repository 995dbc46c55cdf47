"""Concord: reproduce and compare decentralized Bayesian samplers.

``sample`` runs a sampler, ``law`` computes its exact distribution where it is affine; ``problems``
and ``Problem`` make targets of your own data and gradients, ``network`` the graph between agents;
``w2``, ``bias2`` and ``compare`` say how far a result is from the posterior. docs/python.md shows
them at work.
"""

from importlib import import_module

__version__ = "1.0.1"

# Where each name lives; it is imported when it is asked for, so that `import concord` takes a tenth
# of a second. SPEC 1's convention, by this module's __getattr__ (PEP 562): lazy_loader would be a
# dependency for the ten lines below. Editors read __init__.pyi, which a test compares.
_PUBLIC = {
    "ConcordError": "errors",
    "DivergenceWarning": "errors",
    "FullGradientSampler": "sampler",
    "Gaussian": "laws.gaussian",
    "Problem": "problems.function_problem",
    "Sampler": "sampler",
    "bias2": "distances",
    "compare": "distances",
    "from_jax": "models.jax_weights",
    "from_numpyro": "models.numpyro",
    "from_pymc": "models.pymc",
    "from_shards": "models.model",
    "from_torch": "models.torch_weights",
    "law": "law_call",
    "load": "sampling.trace_files",
    "network": "networks.construction",
    "plot_w2": "pictures.runs",
    "predictive": "predictions",
    "problems": "problems",
    "sample": "calls",
    "share_all": "problems.share_all",
    "w2": "distances",
}
# What needs studies, or the arena, lives there.
_MOVED = {
    "bias_map": "concord_arena",
    "load_run": "concord_studies",
    "recommend": "concord_arena",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for."""
    if name in _MOVED:
        package = _MOVED[name]
        raise AttributeError(f"concord.{name} is {package}.{name} now: import {package}")
    if name not in _PUBLIC:
        nearest = import_module(f"{__name__}.errors").nearest
        remedy = nearest(name, _PUBLIC.keys() | _MOVED.keys())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {remedy}")
    module = import_module(f"{__name__}.{_PUBLIC[name]}")
    return module if name == "problems" else getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
