"""A mistake in Python, or in a command, is one sentence that names the remedy."""

import re
from dataclasses import dataclass  # noqa: F401 (of what is typed)

import networkx as nx  # noqa: F401 (of what is typed)
import numpy as np
import pandas
import pytest

import concord
import concord_arena  # noqa: F401 (of what is typed)
from concord.errors import ConcordError
from concord.samplers.de_sgld import DESGLD
from concord.synonyms import SYNONYMS, WARM_UP
from concord_cli.__main__ import main

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 2))
y = X @ [1, -2]
problem = concord.problems.linear_regression(X, y, agents=4)
few = concord.problems.linear_regression(np.eye(9), np.ones(9), 1)


def sample(sampler="de_sgld", problem=problem, network="ring", **options):
    """Sample; ``step_size=0.001`` and so on unless the mistake is in them."""
    given = {"iterations": 3, "chains": 2} | options
    given |= {} if isinstance(sampler, DESGLD) else {"step_size": options.get("step_size", 0.001)}
    return concord.sample(sampler, problem, network, **given)


def law(sampler="de_sgld", problem=problem, network="ring", **options):
    return concord.law(sampler, problem, network, **{"step_size": 0.001, "iterations": 3} | options)


def network(**options):
    return concord.network("ring", 4, **options)


def recommend(**options):
    return concord.recommend(problem, "ring", **{"budget": {"gradients": 20}} | options)


def shaped(function):
    return concord.Problem(function, agents=4, dim=2)


def write(body):
    """A sampler's class with these lines."""
    lines = "".join(f"\n    {line}" for line in body.splitlines())
    names = {"concord": concord, "np": np}
    exec(f"class Mine(concord.Sampler):{lines}", names)
    return names["Mine"]


STEP = "def step(self, state, k, problem, network, rng):\n    return "
sites = concord.problems.linear_regression({"Oslo": X, "Bergen": X}, {"Oslo": y, "Bergen": y})
labels = concord.problems.logistic_regression(X, y > 0, agents=4)
clinic = pandas.Series(["Oslo", "Bergen"] * 20)
table = pandas.DataFrame(X, columns=["age", "dose"])
gaps = table.replace(table.dose[7], np.nan)
trace, exact = sample(iterations=20), law()

# Options, or examples of one, for which ``sample`` is given words of other libraries.
MEANT = (
    *("step_size", "iterations", "chains", "batch_size", "seed", "initial", "network", "progress"),
    *("record={'every': VALUE}", "chains=4, which run at once"),
)


@pytest.mark.parametrize("meant", MEANT)
def test_every_word_of_other_libraries_is_understood(meant):
    for word in SYNONYMS[meant].split():
        value = "..." if word.endswith("*") else "2"  # of another quantity it is left to the reader
        argument = meant.replace("VALUE", value) if "=" in meant else f"{meant}={value}"
        with pytest.raises(ConcordError) as caught:
            sample(**{word.rstrip("*"): 2})
        sentence = f"sample: '{word.rstrip('*')}' is no argument; did you mean {argument}?"
        assert str(caught.value) == sentence


@pytest.mark.parametrize("word", WARM_UP.split())
def test_what_leaves_out_the_warm_up_is_told(word):
    with pytest.raises(ConcordError) as caught:
        sample(**{word: 10})
    assert str(caught.value).startswith(f"sample: '{word}' is no argument; all draws are kept; ")
    trace = sample(step_size=0.02, iterations=400, chains=8)  # noqa: F841 (of what is told)
    late, distance = eval(str(caught.value).partition("afterwards: ")[2])
    assert late.posterior.draw.values[0] == 11 and distance.value.size == 5


MISTAKES = [  # what is typed, and the end of the sentence, or a part of it
    # words of other libraries for options
    (
        "sample(loss=0.2)",
        "sample: 'loss' is no argument; it belongs to the network: network=concord.network('ring', "
        "4, loss={'kind': 'bernoulli', 'rate': 0.2, 'direction': 'one_way'})",
    ),
    ("sample(awake=0.5)", "network: network=concord.network('ring', 4, awake=0.5)"),
    ("sample(delay=2)", "concord.network('ring', 4, delay={'kind': 'fixed', 'iterations': 2})"),
    ("sample(thin=3)", "sample: 'thin' is no argument; did you mean record={'every': 3}?"),
    (
        "concord.sample('de_sgld', problem, 'ring', step_size=0.001, n_iter=50)",
        "sample: 'n_iter' is no argument; did you mean iterations=50?",
    ),
    ("sample(lr=0.002)", "sample: 'lr' is no argument; did you mean step_size=0.002?"),
    (
        "sample(record={'warm_up': 500})",
        "no iteration is recorded after the warm-up of 500 (the last is 3); lower it",
    ),
    ("sample(record={'stride': 10})", "record.stride: unknown key; did you mean 'every'?"),
    ("sample(record={'warmup': 10})", "did you mean 'burn_in'?"),
    (
        "concord.w2(exact, problem, burnin=2)",
        "w2: 'burnin' is no argument; did you mean warm_up=2?",
    ),
    ("concord.problems.linear_regression(X, y, n_agents=4)", "did you mean agents=4?"),
    ("concord.network('ring', nodes=4)", "network: 'nodes' is no argument; did you mean agents=4?"),
    (
        "network(dropout=0.2)",
        "did you mean loss={'kind': 'bernoulli', 'rate': 0.2, 'direction': 'one_way'}?",
    ),
    ("law(chains=5)", "law: 'chains' is no argument; a law takes none; leave it out"),
    # names as papers and readers write them, or misspelt
    ("sample('DE-SGLD')", "there is no sampler 'DE-SGLD'; did you mean 'de_sgld'?"),
    ("sample('D-ADMMS')", "did you mean 'admm'?"),
    ("sample('SGHMC')", "did you mean 'de_sghmc'?"),
    ("sample('SGLD')", "did you mean 'de_sgld'?"),
    ("sample('de_sgdl')", "did you mean 'de_sgld'?"),
    (
        "sample(None)",
        "sampler: None is no sampler; give its name, such as 'de_sgld', or a class",
    ),
    ("sample(network='rnig')", "there is no topology 'rnig'; did you mean 'ring'?"),
    ("sample(network='Erdos-Renyi')", "did you mean 'erdos_renyi'?"),
    ("sample(network='fully_connected')", "did you mean 'complete'?"),
    ("sample(network='cycle')", "did you mean 'ring'?"),
    ("recommend(samplers=['DE-SGLD'])", "there is no entry 'DE-SGLD'; did you mean 'de_sgld'?"),
    (
        "concord.problems.linear_regresion",
        "there is no problem 'linear_regresion'; did you mean 'linear_regression'?",
    ),
    ("concord.problems.LinearRegression", "did you mean 'linear_regression'?"),
    ("concord.problems.logreg", "did you mean 'logistic_regression'?"),
    ("concord.smaple", "no attribute 'smaple'; did you mean 'sample'?"),
    ("concord_arena.recommend", "concord_arena.recommend is concord.recommend now: import"),
    (
        "sample(step_sise=0.002)",
        "sample: 'step_sise' is no argument; did you mean step_size=0.002?",
    ),
    # another type than is wanted
    ("sample(iterations=1e3)", "1000.0 does not fit; give integer >= 1 and <= 1e+09, such as 1000"),
    ("sample(batch_size=2.0)", "such as 2"),
    ("sample(chains='1e2')", "chains: '1e2' is a text; give the number 100 (integer >= 1 and <="),
    ("sample(chains=0)", "chains: 0 does not fit; give integer >= 1"),
    ("sample(seed='one')", "seed: 'one' does not fit; give integer >= 0"),
    (
        "sample(step_size='0.1')",
        "sampler.step_size: '0.1' is a text; give the number 0.1, or a mapping with a kind: ",
    ),
    (
        "sample(initial=np.zeros((4, 2)))",
        "initial: an array of shape (4, 2) is no law of starts, and positions (chains, agents, dim "
        "= 2, 4, 2) cannot be given; state a distribution, such as {'kind': 'normal', 'mean': 0.0,",
    ),
    ("sample(initial='normal')", "such as {'kind': 'normal'}"),
    ("sample(initial={'kind': 'gaussian'})", "did you mean 'normal'?"),
    ("sample(record=10)", "such as {'every': 10}"),
    ("network(loss=0.2)", "such as {'kind': 'bernoulli', 'rate': 0.2, 'direction': 'one_way'}"),
    (
        "network(loss='bernoulli')",
        "such as {'kind': 'bernoulli', 'rate': ..., 'direction': 'one_way'}",
    ),
    ("network(delay=2)", "such as {'kind': 'fixed', 'iterations': 2}"),
    ("network(compression='top_k')", "such as {'kind': 'top_k', 'share': ...}"),
    ("recommend(budget=2000)", "number > 0, such as {'gradients': 2000}"),
    ("recommend(budget={'iterations': 2000})", "is not allowed; did you mean 'gradients'?"),
    ("recommend(samplers='de_sgld')", "give a list, such as ['de_sgld']"),
    (
        "recommend(gradients=20)",
        "recommend: 'gradients' is no argument; choose one of batch_size, budget",
    ),
    # commands
    ("main(['descirbe', 'de_sgld'])", "there is no command 'descirbe'; did you mean 'describe'?"),
    ("main(['describe', 'DE-SGLD'])", "there is no kind 'DE-SGLD'; did you mean 'de_sgld'?"),
    (
        "main(['compare', 'de_sgld', '--taks', 'ring'])",
        "no option '--taks'; did you mean '--tasks'?",
    ),
    ("main(['list', 'sampler'])", "there is no room 'sampler'; did you mean 'samplers'?"),
    ("main(['check', 'bhar2023'])", "did you mean 'config/papers/bhar2023'?"),
    (
        "main(['check', 'config/papers/gurbuzbalabn2021'])",
        "config/papers/gurbuzbalabn2021: there is no folder with YAML files; did you mean "
        "'config/papers/gurbuzbalaban2021'?",
    ),
    (
        "main(['recommend', 'config/papers/bhar2023', '--budget', '2000'])",
        "recommend: argument --budget: '2000' is no price with an amount; give --budget "
        "gradients=2000, bytes=2000 or seconds=2000; `concord help recommend` lists what it takes",
    ),
    (
        "main(['recommend'])",
        "recommend: the following arguments are required: study; `concord help",
    ),
    # what does not go together
    ("sample(record={'agents': [9]})", "record.agents[0]: there is no agent 9; name agents 0 to 3"),
    ("sample(problem=concord.problems.quadratic)", "is no problem; make one with"),
    ("sample(network=None)", "network: it is missing, and there are 4 agents; give one"),
    ("sample(network=nx.path_graph(3))", "it has 3 agents, and the problem 4; give a graph of 4"),
    (
        "sample(network=concord.network('ring', 5))",
        "network: it has 5 agents, and the problem 4; take 'ring', or concord.network('ring', 4)",
    ),
    (
        "sample(problem=sites, network=nx.path_graph(['Oslo', 'Bergn']))",
        "network: the node 'Bergn' is no site of the data; did you mean 'Bergen'?",
    ),
    (
        "sample('graph_gibbs', labels, step_size=None, tolerance=0.1)",
        "a problem of LogisticRegression does not offer; add step_size=0.001, by which it takes "
        "Langevin steps in place of draws from Gaussians, or take de_sgld",
    ),
    (
        "concord.sample('admm', shaped(np.sinh), 'ring', iterations=3, penalty=1.0)",
        "the sampler needs proximal steps, which a problem of gradients alone does not offer; give "
        "concord.Problem its prox=, or choose another problem or sampler",
    ),
    ("sample(network=np.full((4, 4), 0.2 + 1j))", "is no network; give the name of a kind"),
    (
        "sample('d_ula', network=np.full((4, 4), 0.25), fusion=0.1)",
        "sampler d_ula does not mix by weights",
    ),
    ("sample(DESGLD(0.01), step_size=0.5)", "has its own; leave it out of the call"),
    (
        "sample(problem=shaped(lambda x: x[0]))",
        "gradient: it returned an array of shape (4, 2) for x of shape (2, 4, 2); return",
    ),
    (
        "law('gossip_ula')",
        "it draws more than noise; sample it instead (approximate=True does not help)",
    ),
    (
        "law('gossip_ula', problem=shaped(np.sinh))",
        "it draws more than noise; sample it instead (approximate=True does not help)",
    ),
    (
        "law(problem=shaped(np.sinh))",
        "Problem is not quadratic, so no exact law is known; take approximate=True",
    ),
    ("law('sgd', few, None, batch_size=10)", "batch_size: 10 is more points than any agent has"),
    (
        "concord.w2(sample(), None)",
        "as of a problem whose posterior is not Gaussian; give the problem",
    ),
    (
        "concord.w2(sample(), concord.Gaussian(np.zeros(3), np.eye(3)))",
        "posterior: <Gaussian dim: 3; mean: 0, 0, 0; sd: 1, 1, 1> is no posterior of dimension 2",
    ),
    (
        "concord.Gaussian(np.zeros(2), -np.eye(2))",
        "Gaussian: cov is not positive definite; give one whose eigenvalues are positive",
    ),
    ("concord.Problem(np.eye(2), agents=2, dim=2)", "is no function; give one of x"),
    (
        "concord.problems.linear_regression(np.eye(3) + 1j, [1, 2, 3], 1)",
        "X: its numbers are complex; give real ones",
    ),
    (
        "concord.problems.linear_regression(np.diag([1, 1e200, 1]), [1, 2, 3], 1)",
        "X[1, 1]: 1e+200 is beyond 1e+100, where sums of squares are not finite; use larger units",
    ),
    (
        "concord.problems.linear_regression([['a']], [1], 1)",
        "X: [['a']] is no array of numbers; give one",
    ),
    (
        "concord.problems.linear_regression(np.eye(3), [1, 2], 2)",
        "X of shape (3, 3) and y of shape (2,) do not fit; give (rows, dim) and (rows,)",
    ),
    (
        "concord.problems.logistic_regression(np.eye(2), [1, -1], 1)",
        "y: -1 is no label; give 0 and 1",
    ),
    (
        "concord.problems.quadratic([[[1, 0], [0, 0]]], [[1, 1]])",
        "the sum of H is not positive definite",
    ),
    (
        "concord.load('nope.nc')",
        "nope.nc: it cannot be read (No such file or directory); name the draws.nc of a run",
    ),
    (
        "concord.load(__file__)",
        ": it is no file of a trace (netCDF); name the draws.nc of a run, or a file that Trace",
    ),
    # calls that do not fit a function
    ("concord.w2(trace)", "'posterior'; call w2(result, posterior), others by name"),
    ("concord.plot_w2([trace, exact])", "call plot_w2(results, posterior), others by name"),
    ("concord.compare(trace, exact, problem)", "call compare(results, posterior), others by name"),
    (
        "concord.recommend(problem, budget={'gradients': 20})",
        "'network'; call recommend(problem, network), others by name",
    ),
    (
        "concord.sample('de_sgld', problem, 'ring')",
        "'iterations'; call sample(sampler, problem, network, iterations=...), others by name",
    ),
    (
        "concord.sample('de_sgld', problem, 'ring', 100)",
        "too many positional arguments; call sample(sampler, problem, network, iterations=...)",
    ),
    (
        "concord.sample(problem, 'de_sgld', 'ring', iterations=3)",
        "sampler: it is a problem; give sampler, problem and network, in order",
    ),
    ("trace.to_arviz(warmup=5)", "to_arviz: 'warmup' is no argument; did you mean warm_up=5?"),
    # what is asked of results
    ("trace.x", "a Trace is indexed by names; write ['x']"),
    ("trace.to_dataframe()", "a Trace has no 'to_dataframe'; did you mean 'to_xarray'?"),
    ("trace.posterior", "a Trace has no 'posterior'; did you mean 'to_arviz'?"),
    ("exact.covariance", "a Law has no 'covariance'; did you mean 'cov'?"),
    # data and models, as a statistician has them
    ("concord.problems.linear_regression(X, y, agents=4, sigma=2)", "did you mean noise_sd=2?"),
    (
        "concord.problems.linear_regression(X, y, agents=4, prior_sd=2)",
        "did you mean prior_variance=...?",
    ),
    (
        "concord.problems.linear_regression(X, y, agents=4, intercept=True)",
        "did you mean X=np.column_stack([np.ones(len(X)), X])?",
    ),
    (
        "concord.problems.logistic_regression(X, y, agents=4, C=1.0)",
        "did you mean prior_scale=...?",
    ),
    (
        "concord.problems.linear_regression(table.assign(sex='f'), y, agents=4)",
        "X: its column 'sex' has no numbers; leave it out, or make numbers of it, as pandas.get_du",
    ),
    (
        "concord.problems.logistic_regression(X, np.where(y > 0, 'yes', 'no'), agents=4)",
        "y: its entries are texts, such as 'yes'; give numbers, such as (y == 'yes') + 0",
    ),
    (
        "concord.problems.linear_regression(np.where(X > 2, np.nan, X), y, agents=4)",
        "X: column 1 has 1 missing value, in row 39; drop such rows, as df.dropna() does, or impu",
    ),
    (
        "concord.problems.linear_regression(gaps, y, agents=clinic)",
        "X['Bergen']: column 'dose' has 1 missing value, in row 7; drop such rows, as df.dropna()",
    ),
    (
        "concord.problems.linear_regression(table, y, agents=clinic[1:])",
        "agents: 39 labels do not fit 40 rows; give a number of agents, or the site of each row",
    ),
    ("concord.problems.linear_regression(X, y)", "agents is missing; give their number, or X and"),
    # networks
    (
        "sample(network={'a': ['b']})",
        "has no kind; give one, such as {'kind': 'ring'}, or of a mapping of neighbors networkx.G",
    ),
    (
        "sample(network=nx.Graph([(0, 1), (2, 3)]))",
        "network: your graph is not connected: no path joins 0, 1 with 2, 3, so that they cannot",
    ),
    ("concord.network([[0, 1], [1, 2], [2, 3]])", "is no network; give networkx.Graph(pairs) of"),
    ("concord.network(4, 'ring')", "give the name of a kind, such as 'ring', a graph of networkx"),
    ("concord.network(agents=4)", "'graph'; call network(graph, agents), others by name"),
    ("recommend(budget={'seconds': 2})", "concord.network(..., compute={'seconds': 0.1})"),
    # in another order, or of another type
    ("concord.Problem(np.sinh, 4, 2)", "call Problem(gradient, agents=..., dim=...), others by"),
    (
        "concord.Problem(np.sinh, agents=4, dims=2)",
        "Problem: 'dims' is no argument; did you mean dim=2?",
    ),
    (
        "concord.Problem(np.sinh, agents=['a', 'a'], dim=2)",
        "agents: ('a', 'a') has one name twice; rename one",
    ),
    ("sample(rng=np.random.RandomState(1))", "give integer >= 0, or numpy.random.default_rng(1)"),
    ("sample(concord.Sampler)", "sampler: Sampler has no step; derive a class that has one"),
    ("concord.w2(problem, trace)", "is no result; give a trace or a law first, and then the post"),
    (
        "concord.w2(trace, trace)",
        "is none; give a problem, a concord.Gaussian, or draws, (dra",
    ),
    ("concord.w2(trace, 'posterior')", "posterior: 'posterior' is none; give a problem, a"),
    ("concord.plot_w2({'mine': 3}, problem)", "3 is no result; give a trace or a law first"),
    ("concord.predictive(problem, trace)", "is no result; give a trace or a law first"),
    ("concord.compare('de_sgld', 'extra_sgld')", "with no posterior; give them as one list, or"),
    ("concord.compare([], problem)", "results: there are none; give a list of traces, laws or"),
    ("concord.share_all(3)", "problem: 3 is no problem; make one with concord.Problem or"),
    ("trace.plot(coordinates=1)", "coordinates: 1 is no list; give one, [1]"),
    ("exact['mean']", "a Law has attributes; write .mean"),
    # other samplers' options
    ("sample('de_sghmc')", "sampler: the key 'friction' is missing; add it (friction gamma)"),
    (
        "sample('d_mala', drift='half')",
        "sampler: the key 'correction' is missing; give one of 'none', 'mala', 'energy', "
        "'released' (rule by which moves are accepted, ",
    ),
    # samplers of one's own
    (
        "sample(write('step_size = 0.1'))",
        "Mine.step_size has no type, so that it is no option; write step_size: float = 0.1",
    ),
    (
        "write('step_size = 0.1')(step_size=0.2)",
        "Mine.step_size has no type, so that it is no option; write step_size: float = 0.1",
    ),
    (
        "write('step_size = 0.1')(0.2)",
        "Mine: it takes no options in order, each once; name the others, or write them in the",
    ),
    (
        "dataclass(write('step_size: float'))",
        "Mine: remove @dataclass; its fields are options as is",
    ),
    ("sample(write('step_size: float'))", "Mine has no step; write one"),
    (
        "write('def step(self, state):\\n    return state')",
        "Mine.step: it takes self, state; write step(self, state, k, problem, network, rng)",
    ),
    (
        "sample(write(f'step_size: float\\n{STEP}state._replace(x=np.zeros(state.shape))'))",
        "the state has no 'shape'; its positions have, state.x.shape",
    ),
    (
        "sample(write(f'step_size: float\\n{STEP}state.x'))",
        "Mine.step returned ndarray, but must return Positions, as its init does; write "
        "return state._replace(x=...)",
    ),
]


@pytest.mark.parametrize(("typed", "sentence"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_ends_in_a_sentence_with_its_remedy(typed, sentence, capsys):
    if typed.startswith("main"):
        assert eval(typed) == 2
        said = capsys.readouterr().err.strip()
    else:
        with pytest.raises((ConcordError, AttributeError)) as caught:
            eval(typed)
        said = str(caught.value)
    assert sentence in said and "\n" not in said


# What sentences suggest, as Python: an argument, or the value of the one that is typed.
ARGUMENT = r"(?:did you mean|network:) (\w+=[^?]*)\??$"
VALUE = r"(?:such as|give the number) ([\d.]+|\{.*\}|\[.*\])(?:\?|,|$| \()"
CALL = r"^([\w.]+\((?:.*, )?)(\w+=)([^=]+|.*\))\)$"  # of which the last argument is the mistake


@pytest.mark.filterwarnings("ignore::concord.DivergenceWarning")
def test_every_suggestion_that_is_python_works():
    repaired = []
    for typed, _ in MISTAKES:
        call = re.match(CALL, typed)
        if not call:
            continue
        with pytest.raises((ConcordError, AttributeError)) as caught:
            eval(typed)
        said = str(caught.value)
        if argument := re.search(ARGUMENT, said):
            repaired.append(f"{call[1]}{argument[1]})")
        elif value := re.search(VALUE, said):
            repaired.append(f"{call[1]}{call[2]}{value[1]})")
    works = [line for line in repaired if "..." not in line and "X=np" not in line]
    for line in works:
        eval(line)
    assert len(works) > 20


def test_concord_alone_prints_its_help(capsys):
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 0 and re.search(r"^ +compare +", capsys.readouterr().out, re.M)
