"""Printed bounds and conditions against hand computation and their own limits."""

import numpy as np
import pytest

import everything
from concord_studies.metrics._theorems import Condition, geometric_sum

theory = everything.shared("gurbuzbalaban2021", "theory")
Setting = theory.Setting


def problem(agents: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((agents, 20, dim))
    return features.swapaxes(1, 2) @ features, 5 * rng.standard_normal((agents, dim))


def test_terms_of_a_network_follow_print():
    agents, dim, eta, sigma = 4, 2, 0.004, 3.0
    gram, shift = problem(agents, dim, 3)
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((agents, dim))
    k = np.arange(30)
    eigenvalues = np.array([1, 1 / 3, 1 / 3, -1 / 3])
    result = theory.theorem2(Setting(gram, shift, eigenvalues, mean, 0.4), eta, sigma, k)
    c = result.constants
    # What enters from the problem, from its definition: potentials minimized, gradients taken.
    minimizer = np.linalg.solve(gram.sum(axis=0), shift.sum(axis=0))
    height = 0.0
    for a, b in zip(gram, shift, strict=True):
        lowest = np.linalg.solve(a, b)
        height -= lowest @ a @ lowest / 2 - b @ lowest
    mu = min(np.linalg.eigvalsh(a)[0] for a in gram)
    smooth = max(np.linalg.eigvalsh(a)[-1] for a in gram)
    assert c["C1_bar"] == pytest.approx(np.sqrt(2 * smooth * height), rel=1e-12)
    gradient = sum(np.sum((a @ minimizer - b) ** 2) for a, b in zip(gram, shift, strict=True))
    assert c["|grad F(x*)|"] ** 2 == pytest.approx(gradient, rel=1e-12)
    draws = mean + 0.4 * rng.standard_normal((200_000, agents, dim))
    for name, values in (
        ("E|x0|^2", np.sum(draws**2, axis=(1, 2))),
        ("E|x0 - x*|^2", np.sum((draws - minimizer) ** 2, axis=(1, 2))),
        ("E|xbar0 - x_*|^2", np.sum((draws.mean(axis=1) - minimizer) ** 2, axis=1)),
    ):
        error = values.std() / np.sqrt(len(values))
        assert c[name] == pytest.approx(values.mean(), abs=4 * error), name
    g, low = 1 / 3, -1 / 3
    c1 = np.sqrt(2 * smooth * height) * (1 + 2 * (smooth + mu) / mu)
    d_square = (
        8 * smooth**2 * c["E|x0 - x*|^2"]
        + 12 * smooth**2 * c1**2 * eta**2 * 4 / (1 - g) ** 2
        + 4 * smooth**2 * (eta * sigma**2 * 4 + 16) / (mu * (1 + low - eta * smooth))
        + 2 * gradient
    )
    assert c["D"] ** 2 == pytest.approx(d_square, rel=1e-12)
    half = 1 - eta * smooth / 2
    r = 1 - eta * mu * half
    lines = [
        (1 - mu * eta) ** k * (np.sqrt(c["E|xbar0 - x_*|^2"]) + np.sqrt(2 * 2 / mu / 4)),
        1.65 * smooth / mu * np.sqrt(eta * 2 / 4),
        np.sqrt(
            eta
            * (eta / (mu * half) + (1 + eta * smooth) ** 2 / (mu**2 * half**2))
            * (
                4 * smooth**2 * d_square * eta / (4 * (1 - g) ** 2)
                + 4 * smooth**2 * sigma**2 * eta / (1 - g**2)
                + 8 * smooth**2 * 2 / (1 - g**2)
            )
        ),
        np.sqrt((g**k - r**k) / (g - r)) * 2 * smooth * np.sqrt(g / 4) * np.sqrt(c["E|x0|^2"]),
        2 * g ** (k / 2) / 2 * np.sqrt(c["E|x0|^2"]),
        2 * np.sqrt(d_square) * eta / (2 * (1 - g)),
        2 * np.sqrt(2 * 2 * eta) / np.sqrt(1 - g**2),
        np.sqrt(eta) * sigma / np.sqrt(mu * half * 4),
        2 * sigma * eta / np.sqrt(1 - g**2),
    ]
    np.testing.assert_allclose(result.printed, sum(lines), rtol=1e-10)
    apart = (
        4 * g**k * c["E|x0|^2"]
        + 4 * d_square * eta**2 / (1 - g) ** 2
        + (4 * sigma**2 * 4 * eta**2 + 8 * 2 * 4 * eta) / (1 - g**2)
    )
    assert result.lemmas.keys() == {"lemma4", "lemma5", "lemma6", "lemma9"}
    np.testing.assert_allclose(result.lemmas["lemma4"], d_square, rtol=1e-12)
    np.testing.assert_allclose(result.lemmas["lemma5"], apart, rtol=1e-12)
    np.testing.assert_allclose(result.lemmas["lemma6"], smooth**2 * apart / 4, rtol=1e-12)
    np.testing.assert_allclose(result.lemmas["lemma9"], 2 * 2 / 4 / mu, rtol=1e-12)
    # Lemma 7's recursion, term by term: r^(k-1-s) factor 4 L^2 g^s E|x_0|^2 / N.
    factor = eta * (eta + (1 + eta * smooth) ** 2 / (mu * half))
    lost = [sum(r ** (n - 1 - s) * g**s for s in range(n)) * factor * c["E|x0|^2"] for n in k]
    transient = np.sqrt(lost) * smooth  # 2 L / sqrt(4)
    np.testing.assert_allclose(result.rederived - result.printed, transient - lines[3], atol=1e-9)


def test_transient_where_its_two_rates_coincide():
    k = np.arange(6)
    middle = geometric_sum(0.7, 0.7, k)
    np.testing.assert_allclose(middle, np.where(k > 0, k * 0.7 ** (k - 1.0), 0), rtol=1e-12)
    # Continuous there: a relative change of 1e-6 moves it by as much.
    np.testing.assert_allclose(geometric_sum(0.7, 0.7 + 7e-7, k), middle, rtol=1e-5)
    explicit = [sum(0.2**i * 0.9 ** (n - 1 - i) for i in range(n)) for n in k]
    np.testing.assert_allclose(geometric_sum(0.2, 0.9, k), explicit, rtol=1e-12)


def test_terms_of_theorem10_follow_print():
    agents, dim, eta, beta, c5, sigma = 4, 2, 0.05, 1e-5, 37.0, 3.0
    gram, shift = problem(agents, dim, 3)
    eigenvalues = np.array([1, 1 / 3, 1 / 3, -1 / 3])
    mean = np.random.default_rng(0).standard_normal((agents, dim))
    k = np.arange(30)
    result = theory.theorem10(
        Setting(gram, shift, eigenvalues, mean, 0.4), eta, (1 - beta) / eta, c5, sigma, k
    )
    assert all(condition.holds for condition in result.conditions)
    mu = min(np.linalg.eigvalsh(a)[0] for a in gram)
    smooth = max(np.linalg.eigvalsh(a)[-1] for a in gram)
    minimizer = np.linalg.solve(gram.sum(axis=0), shift.sum(axis=0))
    start = np.sum(mean**2) + agents * dim * 0.4**2
    centre = np.sum((mean.mean(axis=0) - minimizer) ** 2) + dim * 0.4**2 / agents
    g, half = 1 / 3, 1 - eta**2 * smooth / 2
    r = 1 - eta**2 * mu * half
    front = eta**2 / (mu * half) + (1 + eta**2 * smooth) ** 2 / (mu**2 * half**2)
    lines = [
        (1 - mu * eta**2) ** k * (np.sqrt(centre) + np.sqrt(2 * dim / mu / agents)),
        1.65 * smooth / mu * np.sqrt(eta**2 * dim / agents),
        np.sqrt(2 * front)
        * np.sqrt(
            beta**2 * c5 / eta**2 / agents + 2 * smooth**2 * c5 * eta**2 / agents / (1 - g) ** 2
        ),
        np.sqrt(2 * front) * np.sqrt((np.sqrt(1 - beta) - 1) ** 2 / eta**2 * dim / agents),
        np.sqrt((g**k - r**k) / (g - r)) * 2 * smooth * np.sqrt(g / agents) * np.sqrt(start),
        np.sqrt(2) * g ** (k / 2) / np.sqrt(agents) * np.sqrt(start),
        np.sqrt(2 * c5) * eta / np.sqrt(agents) / (1 - g),
        eta * sigma / np.sqrt(mu * half * agents),
    ]
    np.testing.assert_allclose(result.printed, sum(lines), rtol=1e-9)
    apart = 2 * g**k * start + 2 * c5 * eta**2 / (1 - g) ** 2
    assert result.lemmas.keys() == {"lemma13", "lemma14"}
    np.testing.assert_allclose(result.lemmas["lemma13"], apart, rtol=1e-9)
    np.testing.assert_allclose(result.lemmas["lemma14"], smooth**2 * apart / agents, rtol=1e-9)
    # Lemma 15's recursion (B.48), term by term.
    factor = eta**2 * (eta**2 + (1 + eta**2 * smooth) ** 2 / (mu * half))
    lost = [
        sum(r ** (n - 1 - s) * 2 * factor * 2 * smooth**2 * g**s / agents * start for s in range(n))
        for n in k
    ]
    np.testing.assert_allclose(
        result.rederived - result.printed, np.sqrt(lost) - lines[4], atol=1e-9
    )


def verdicts(conditions: list[Condition]) -> dict[str, bool]:
    return {condition.name: condition.holds for condition in conditions}


def failed(result: theory.Bound) -> list[str]:
    """The conditions that fail; the bound is infinite then, and only then."""
    names = [condition.name for condition in result.conditions if not condition.holds]
    assert np.isinf(result.printed).all() == np.isinf(result.rederived).all() == bool(names)
    return names


def theorem2_at(eta: float, eigenvalues: list[float], curvature=(2.0, 3.0)) -> theory.Bound:
    gram = np.array(curvature).reshape(-1, 1, 1)
    return theory.theorem2(
        Setting(gram, np.ones((2, 1)), np.array(eigenvalues), 0.0, 1.0), eta, 0.0, [0, 10]
    )


def test_conditions_of_theorem2_flip_where_they_should():
    # mu = 2, L = 3: the step size must stay below 1/5.
    assert failed(theorem2_at(0.2 - 1e-9, [1, 0])) == []
    assert failed(theorem2_at(0.2 + 1e-9, [1, 0])) == ["step size"]
    # 1 + lambda_N = 0.3 must exceed eta L, so eta < 0.1.
    low = [1, -0.7]
    assert failed(theorem2_at(0.1 - 1e-9, low)) == []
    assert failed(theorem2_at(0.1 + 1e-9, low)) == ["contraction"]
    assert failed(theorem2_at(0.1, [1, 1])) == ["connected graph"]
    assert failed(theorem2_at(0.1, [1, 1 - 1e-6])) == []
    assert "strong convexity" in failed(theorem2_at(0.1, [1, 0], curvature=(0.0, 3.0)))
    # Beyond 1/(mu + L) the decay condition, at most mu/(2L), still holds: print could omit it.
    assert all(verdicts(theorem2_at(eta, [1, 0]).conditions)["decay"] for eta in (0.1, 0.3, 5.0))


def test_conditions_of_lemma12_flip_where_they_should():
    mu, smooth, low = 1.0, 2.0, -0.2

    def holds(eta: float, beta: float) -> dict[str, bool]:
        return verdicts(theory.lemma12(eta, (1 - beta) / eta, mu, smooth, low))

    edge = np.sqrt(0.8 / 6)  # (4.9)
    assert holds(edge * (1 - 1e-9), 1e-9)["(4.9)"]
    assert not holds(edge * (1 + 1e-9), 1e-9)["(4.9)"]
    assert holds(0.3, 1e-12)["beta"]
    assert not holds(0.3, -1e-12)["beta"]
    assert not holds(0.3, 1.0)["beta"]
    first = (0.8 - 4 * 0.09) / 4
    assert holds(0.3, first - 1e-9)["(4.10), first bound"]
    assert not holds(0.3, first + 1e-9)["(4.10), first bound"]
    outside = holds(0.3, -1e-12)  # a beta that is none of the lemma's
    assert not outside["(4.10), first bound"] and not outside["(4.10), second bound"]

    def second(beta: float, eta: float = 0.3) -> float:
        # c_1 in the form of the proof, (B.9), with alpha = eta^2 and L_alpha of (B.5).
        alpha = eta**2
        l_alpha = smooth + (1 - low) / alpha
        c1 = 0.5 * alpha * mu * l_alpha / ((1 - beta) * (l_alpha + mu) + 2 * l_alpha * beta)
        return np.sqrt(c1 * mu**3 * alpha**3 * (1 + low) / 64)

    beta = 0.0
    for _ in range(100):  # the condition is implicit: find where it is an equality
        beta = second(beta)
    assert holds(0.3, beta * (1 - 1e-9))["(4.10), second bound"]
    assert not holds(0.3, beta * (1 + 1e-9))["(4.10), second bound"]
    assert all(holds(0.3, beta / 2).values())
