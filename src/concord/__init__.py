"""Concord: reproduce and compare decentralized Bayesian samplers.

``sample`` runs a sampler, ``law`` computes its exact distribution where it is affine; ``problems``
and ``Problem`` make targets of your own data and gradients, ``network`` the graph between agents;
``w2``, ``bias2`` and ``compare`` say how far a result is from the posterior, and ``recommend``
which sampler to take. docs/python.md shows them at work.
"""

from importlib import import_module

__version__ = "1.1.0"

# Where each name lives; it is imported when it is asked for, so that `import concord` takes a tenth
# of a second. SPEC 1's convention, by this module's __getattr__ (PEP 562): lazy_loader would be a
# dependency for the ten lines below. Editors read __init__.pyi, which a test compares.
_PUBLIC = {
    "ConcordError": "concord.errors",
    "DivergenceWarning": "concord.errors",
    "FullGradientSampler": "concord.sampler",
    "Gaussian": "concord.laws.gaussian",
    "Problem": "concord.problems.function_problem",
    "Sampler": "concord.sampler",
    "bias2": "concord.distances",
    "bias_map": "concord_arena.biases",
    "compare": "concord.comparison",
    "from_jax": "concord.models.jax_weights",
    "from_numpyro": "concord.models.numpyro",
    "from_pymc": "concord.models.pymc",
    "from_shards": "concord.models.model",
    "from_torch": "concord.models.torch_weights",
    "law": "concord.law_call",
    "load": "concord.sampling.trace_files",
    "load_run": "concord_studies.repeat",
    "network": "concord.networks.construction",
    "plot_w2": "concord.pictures.runs",
    "predictive": "concord.predictions",
    "problems": "concord.problems",
    "recommend": "concord_arena.recommendation",
    "sample": "concord.calls",
    "share_all": "concord.problems.share_all",
    "test": "concord_arena.testing",
    "w2": "concord.distances",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for."""
    if name not in _PUBLIC:
        remedy = import_module(f"{__name__}.errors").nearest(name, _PUBLIC)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {remedy}")
    module = import_module(_PUBLIC[name])
    return module if name == "problems" else getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
