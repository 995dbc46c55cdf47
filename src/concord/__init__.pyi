# For editors and type checkers, which do not see names that are imported when they are asked for.
from concord import problems as problems
from concord.calls import sample as sample
from concord.comparison import compare as compare
from concord.distances import bias2 as bias2
from concord.distances import w2 as w2
from concord.errors import ConcordError as ConcordError
from concord.errors import DivergenceWarning as DivergenceWarning
from concord.law_call import law as law
from concord.laws.gaussian import Gaussian as Gaussian
from concord.models.jax_weights import from_jax as from_jax
from concord.models.model import from_shards as from_shards
from concord.models.numpyro import from_numpyro as from_numpyro
from concord.models.pymc import from_pymc as from_pymc
from concord.models.torch_weights import from_torch as from_torch
from concord.networks.construction import network as network
from concord.pictures.runs import plot_w2 as plot_w2
from concord.predictions import predictive as predictive
from concord.problems.function_problem import Problem as Problem
from concord.problems.share_all import share_all as share_all
from concord.sampler import FullGradientSampler as FullGradientSampler
from concord.sampler import Sampler as Sampler
from concord.sampling.trace_files import load as load
from concord_arena.biases import bias_map as bias_map
from concord_arena.recommendation import recommend as recommend
from concord_arena.testing import test as test
from concord_studies.repeat import load_run as load_run

__version__: str
