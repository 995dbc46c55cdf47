"""Scores of predictions, against scikit-learn, closed forms and a grid."""

import numpy as np
import pytest
from scipy import stats

import concord
from concord import predictions
from concord.errors import ConcordError

RNG = np.random.default_rng(11)
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def probabilities(*shape: int) -> np.ndarray:
    p = RNG.gamma(0.7, size=shape)
    return p / p.sum(axis=-1, keepdims=True)


def test_scores_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    p, y = probabilities(3, 2, 40, 4), RNG.integers(0, 4, 40)
    scores = predictions.score(p, y)
    for place in np.ndindex(3, 2):
        one = p[place]
        assert np.isclose(scores["accuracy"][place], metrics.accuracy_score(y, one.argmax(1)))
        loss = metrics.log_loss(y, one, labels=range(4))
        assert np.isclose(scores["nll"][place], loss, **EXACT)
        squares = sum(metrics.brier_score_loss(y == c, one[:, c]) for c in range(4))
        assert np.isclose(scores["brier"][place], squares, **EXACT)


@pytest.mark.parametrize("by", ["confidence", "entropy"])
def test_auroc_is_that_of_scikit_learn_also_with_ties(by):
    metrics = pytest.importorskip("sklearn.metrics")
    own, other = probabilities(2, 30, 3), probabilities(2, 50, 3)
    other[:, :10] = own[:, :10]
    sure = [predictions.certainty(p, by) for p in (own, other)]
    area = predictions.auroc(*sure)
    for k in range(2):
        number = np.concatenate([sure[0][k], sure[1][k]])
        assert np.isclose(area[k], metrics.roc_auc_score(np.arange(80) < 30, number), **EXACT)
    entropy = -(own * np.log(own)).sum(axis=-1)
    assert np.allclose(predictions.certainty(own, "entropy"), -entropy, **EXACT)


def test_calibration_error_of_made_up_probabilities():
    """Ten rows of confidence 0.8 of which six are right, and ten of 0.55, of which seven are."""
    p = np.array([[0.8, 0.2]] * 10 + [[0.45, 0.55]] * 10)
    y = np.array([0] * 6 + [1] * 4 + [1] * 7 + [0] * 3)
    scores = predictions.score(p, y)
    assert np.isclose(scores["ece"], (10 * 0.2 + 10 * 0.15) / 20, **EXACT)
    floor = np.sqrt(2 / np.pi) * (np.sqrt(10 * 0.16) + np.sqrt(10 * 0.2475)) / 20
    assert np.isclose(scores["ece_floor"], floor, **EXACT)
    sure = np.array([[1.0, 0.0]] * 4)
    assert predictions.score(sure, np.zeros(4, int))["ece"] == 0
    wrong = predictions.score(sure, np.ones(4, int))
    assert wrong["ece"] == 1 and wrong["nll"] == np.inf and wrong["brier"] == 2
    edge = predictions.calibration_error(np.array([True, False]), np.array([9 / 15, 9.5 / 15]))
    assert np.isclose(edge[0], (6 / 15 + 9.5 / 15) / 2, **EXACT)  # bins are closed on the right
    one = predictions.calibration_error(np.array([True, False]), np.array([0.6, 0.9]), count=1)
    assert np.isclose(one[0], abs(1 - 0.6 - 0.9) / 2, **EXACT)


def test_floor_is_the_calibration_error_of_probabilities_without_error():
    p = probabilities(400, 3)
    cumulative = p.cumsum(axis=1)
    eces = []
    for _ in range(500):
        y = (RNG.random((400, 1)) > cumulative).sum(axis=1)
        eces.append(predictions.score(p, y)["ece"])
    floor = predictions.score(p, y)["ece_floor"]
    assert abs(np.mean(eces) / floor - 1) < 0.05  # a normal law of each bin's sum


def test_agreement_and_total_variation():
    p, q = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.6, 0.4], [0.7, 0.3]])
    assert predictions.agreement(p, q) == 0.5
    assert np.isclose(predictions.total_variation(p, q), 0.3, **EXACT)


ROWS, AGENTS = 40, 4
X = np.column_stack([RNG.standard_normal(ROWS), np.ones(ROWS)])
Y = (RNG.random(ROWS) < 1 / (1 + np.exp(-X @ [2.0, -0.5]))).astype(int)
X_TEST = np.column_stack([np.linspace(-3, 3, 25), np.ones(25)])
Y_TEST = (X_TEST[:, 0] > 0.4).astype(int)
PARTS = np.split(np.arange(ROWS), AGENTS)


def predict(x, X):
    odds = 1 / (1 + np.exp(-x @ X.T))
    return np.stack([1 - odds, odds], axis=-1)


def two_weights(**options) -> concord.Problem:
    """Logistic regression with prior N(0, I), as functions of somebody else's."""
    features, labels = X.reshape(AGENTS, -1, 2), Y.reshape(AGENTS, -1)

    def slope(x, features, labels):
        errors = predict_rows(x, features) - labels
        return np.einsum("cab,cabd->cad", errors, features)

    def predict_rows(x, features):
        return 1 / (1 + np.exp(-np.einsum("cad,cabd->cab", x, features)))

    def gradient(x):
        shape = (len(x), *features.shape)
        return slope(x, np.broadcast_to(features, shape), labels) + x / AGENTS

    def batch_gradient(x, rows):
        agent = np.arange(AGENTS)[:, None]
        scale = ROWS / AGENTS / rows.shape[-1]
        return scale * slope(x, features[agent, rows], labels[agent, rows]) + x / AGENTS

    return concord.Problem(
        gradient,
        agents=AGENTS,
        dim=2,
        batch_gradient=batch_gradient,
        counts=[ROWS // AGENTS] * AGENTS,
        predict=predict,
        **options,
    )


def by_grid() -> tuple[np.ndarray, np.ndarray]:
    """Predictive probabilities of the test rows, integrated on a grid, and draws of it."""
    axes = np.linspace(-4, 8, 301), np.linspace(-5, 5, 301)
    w = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    odds = w @ X.T
    logs = (Y * odds - np.logaddexp(0, odds)).sum(axis=1) - (w**2).sum(axis=1) / 2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    used = weights > 1e-12
    p = np.einsum("w,wrc->rc", weights[used], predict(w[used], X_TEST)) / weights[used].sum()
    return p, w[RNG.choice(len(w), 4000, p=weights)]


@pytest.fixture(scope="module")
def sampled():
    steps = {"step_size": 0.01, "batch_size": 5, "iterations": 3000, "record": {"every": 10}}
    return concord.sample("diging_sgld", two_weights(), "complete", chains=8, **steps)


def test_predictive_of_two_weights_is_that_of_a_grid(sampled):
    """Within the interval over chains and 0.01, for a step's bias."""
    p, draws = by_grid()
    exact = predictions.score(p, Y_TEST)
    problem = two_weights(reference=draws)
    found = concord.predictive(sampled, problem, test=(X_TEST, Y_TEST), warm_up=300)
    assert found.sizes == {"agent": 6} and found.agent.values.tolist() == [
        0,
        1,
        2,
        3,
        "mean",
        "average",
    ]
    for name in ("accuracy", "nll", "brier", "ece"):
        off = np.abs(found[name] - exact[name])
        half = (found[f"{name}_hi"] - found[f"{name}_lo"]) / 2
        assert (off < half + (0.05 if name in ("ece", "accuracy") else 0.01)).all(), name
    assert (found.tv < 0.03).all() and (found.agreement > 0.9).all()
    assert (found.nll_lo <= found.nll).all() and (found.nll <= found.nll_hi).all()


def test_scores_of_each_draw_and_of_their_mixture(sampled):
    by_draw = concord.predictive(sampled, two_weights(), test=(X_TEST, Y_TEST))
    assert by_draw.nll.dims == ("draw", "agent") and by_draw.sizes["draw"] == 301
    k = 200
    p = predict(sampled["x"][:, k], X_TEST)
    each = predictions.score(p, Y_TEST)["nll"].mean(axis=0)
    assert np.allclose(by_draw.nll.values[k, :4], each, **EXACT)
    mean = predictions.score(p.mean(axis=1), Y_TEST)["nll"].mean()
    assert np.isclose(by_draw.nll.sel(agent="mean")[k], mean, **EXACT)
    average = predictions.score(predict(sampled["x"][:, k].mean(axis=1), X_TEST), Y_TEST)["brier"]
    assert np.isclose(by_draw.brier.sel(agent="average")[k], average.mean(), **EXACT)
    mixed = concord.predictive(sampled, two_weights(), test=(X_TEST, Y_TEST), warm_up=1000)
    later = sampled["x"][:, 101:]
    mixture = np.mean([predict(later[:, k], X_TEST) for k in range(200)], axis=0)
    exact = predictions.score(mixture, Y_TEST)
    assert np.allclose(mixed.brier.values[:4], exact["brier"].mean(axis=0), **EXACT)


def test_another_data_set_is_told_apart(sampled):
    far = concord.predictive(
        sampled, two_weights(), test=(X_TEST * [10, 1], Y_TEST), other=X_TEST / 10, warm_up=300
    )
    assert (far.auroc > 0.9).all() and set(far.auroc.dims) == {"agent"}
    itself = concord.predictive(
        sampled,
        two_weights(),
        test=(X_TEST, Y_TEST),
        other=X_TEST,
        certainty_by="entropy",
        warm_up=300,
    )
    assert np.allclose(itself.auroc, 0.5, **EXACT)


def test_diverged_chains_and_one_chain_have_no_intervals():
    run = {"step_size": 0.01, "iterations": 20}
    alone = concord.sample("de_sgld", two_weights(), "ring", chains=1, **run)
    found = concord.predictive(alone, two_weights(), test=(X_TEST, Y_TEST))
    assert np.isnan(found.nll_lo).all() and np.isfinite(found.nll).all()
    alone.variables["diverged_at"] = ("chain",), np.array([10])
    with pytest.warns(concord.DivergenceWarning):
        lost = concord.predictive(alone, two_weights(), test=(X_TEST, Y_TEST), warm_up=5)
    assert np.isnan(lost.accuracy).all() and np.isnan(lost.nll).all()


def test_mini_batches_of_a_function_are_scaled(sampled):
    assert sampled.attributes["sampler"] == "diging_sgld" and not sampled.divergence()
    problem, x = two_weights(), RNG.standard_normal((2, AGENTS, 2))
    rows = np.broadcast_to(np.arange(10), (2, AGENTS, 10))
    assert np.allclose(problem.batch_gradient(x, rows), problem.gradient(x), **EXACT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, r"test: there are no rows .* give test=\(X, y\)"),
        ({"test": (X_TEST, Y_TEST[:3])}, "do not fit"),
        ({"test": (X_TEST, Y_TEST + 1)}, "number classes from 0"),
        ({"test": (X_TEST, Y_TEST), "certainty_by": "odds"}, "use confidence or entropy"),
        ({"test": (X_TEST, Y_TEST), "reference": np.zeros((3, 5))}, r"give \(draws, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused(sampled, options, sentence):
    with pytest.raises(ConcordError, match=sentence):
        concord.predictive(sampled, two_weights(), **options)


def test_problems_that_do_not_predict_are_refused(sampled):
    problem = concord.Problem(lambda x: x, agents=AGENTS, dim=2)
    with pytest.raises(ConcordError, match="does not predict; make it by"):
        concord.predictive(sampled, problem, test=(X_TEST, Y_TEST))
    means = concord.Problem(lambda x: x, agents=AGENTS, dim=2, predict=lambda x, X: x @ X.T)
    with pytest.raises(ConcordError, match="scores are of class probabilities"):
        concord.predictive(sampled, means, test=(X_TEST, Y_TEST))
    for counts, sentence in (
        (None, "counts: it is missing"),
        ([1, 2], "not the numbers of points"),
    ):
        with pytest.raises(ConcordError, match=sentence):
            concord.Problem(
                lambda x: x, agents=4, dim=2, batch_gradient=lambda x, rows: x, counts=counts
            )


SD = 0.5


def regression(**options) -> concord.Problem:
    """Targets are normal about x'X with a known standard deviation."""

    def predict(x, X):
        return x @ X.T, np.full((*x.shape[:2], len(X)), SD)

    return concord.Problem(lambda x: x, agents=AGENTS, dim=2, predict=predict, **options)


def test_a_regression_is_scored_as_its_closed_form_is():
    """Draws of N(m, C): the mixture over them is about N(X m, X C X' + sd^2)."""
    law = concord.Gaussian(np.array([0.5, -1.0]), np.array([[0.3, 0.1], [0.1, 0.2]]))
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 2))
    y = rows @ [0.2, -0.8] + rng.standard_normal(200)
    trace = concord.sample("de_sgld", regression(), "ring", step_size=0.1, iterations=400, chains=3)
    draws = rng.multivariate_normal(law.mean, law.cov, trace["x"].shape[:3])
    trace.variables["x"] = trace.variables["x"][0], draws
    found = concord.predictive(trace, regression(), test=(rows, y), warm_up=0).sel(agent="mean")
    mean, sd = rows @ law.mean, np.sqrt(np.einsum("rd,de,re->r", rows, law.cov, rows) + SD**2)
    exact = stats.norm(mean, sd)
    assert np.isclose(found.mse, ((y - mean) ** 2).mean(), rtol=0.01)
    assert np.isclose(found.nll, -exact.logpdf(y).mean(), rtol=0.01)
    assert np.isclose(found.coverage, (np.abs(exact.cdf(y) - 0.5) < 0.475).mean(), atol=0.01)
    assert set(found.data_vars) == {
        f"{name}{end}" for name in ("mse", "nll", "coverage") for end in ("", "_lo", "_hi")
    }
    one = concord.predictive(trace, regression(), test=(rows, y)).sel(agent=2, draw=7)
    errors = y - draws[:, 7, 2] @ rows.T
    assert np.isclose(one.mse, (errors**2).mean(), rtol=1e-12)
    assert np.isclose(one.nll, -stats.norm.logpdf(errors, scale=SD).mean(), rtol=1e-12)
    covered = np.abs(errors) < SD * stats.norm.ppf(0.975)
    assert np.isclose(one.coverage, covered.mean(), rtol=1e-12)
    far = concord.predictive(trace, regression(), test=(rows, y + 100), warm_up=0)
    assert np.isfinite(far.nll).all() and (far.nll > 1000).all()  # densities underflow


def test_what_only_classes_have_is_refused_of_a_regression(sampled):
    for name, value in (("reference", np.zeros((3, 2))), ("other", X_TEST)):
        with pytest.raises(ConcordError, match=rf"{name}: .* is a regression; leave it out"):
            concord.predictive(sampled, regression(), test=(X, Y), **{name: value})
    wide = concord.Problem(lambda x: x, agents=AGENTS, dim=2, predict=lambda x, X: (x, 1.0))
    with pytest.raises(ConcordError, match=r"means of 40 rows .* a target for each row"):
        concord.predictive(sampled, wide, test=(X, Y))
