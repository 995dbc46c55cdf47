# For editors and type checkers, which do not see names that are imported when they are asked for.
from concord import problems as problems
from concord.distances import bias2 as bias2
from concord.distances import compare as compare
from concord.distances import w2 as w2
from concord.errors import ConcordError as ConcordError
from concord.errors import DivergenceWarning as DivergenceWarning
from concord.laws.gaussian import Gaussian as Gaussian
from concord.library.sampling import law as law
from concord.library.sampling import load as load
from concord.library.sampling import load_run as load_run
from concord.library.sampling import sample as sample
from concord.models.model import from_shards as from_shards
from concord.models.numpyro import from_numpyro as from_numpyro
from concord.models.pymc import from_pymc as from_pymc
from concord.networks.own import network as network
from concord.problems._functions import Problem as Problem
from concord.sampler import Sampler as Sampler
from concord_arena.bias_map import bias_map as bias_map
from concord_arena.recommendation import recommend as recommend

__version__: str
