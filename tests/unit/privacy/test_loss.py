from fractions import Fraction
from math import exp, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from discreet.errors import BadSetting
from discreet.privacy.loss import epsilon_of, rho_of, rho_of_pure, rho_of_selection, root_below


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Exact privacy profile of the Gaussian mechanism with sensitivity 1 and variance 1/(2 rho) (Balle, Wang 2018)."""
    mu = sqrt(2 * rho)
    return float(stats.norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


RHOS = [1e-6, 1e-4, 0.0143, 0.5, 3.0]
DELTAS = [1e-12, 4.2e-10, 1e-5, 0.1]


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("conversion", ["tight", "closed-form"])
def test_conversions_never_claim_less_than_the_gaussian_truth(rho: float, delta: float, conversion: str) -> None:
    epsilon = epsilon_of(rho, delta, conversion=conversion)
    assert gaussian_delta(rho, epsilon) <= delta


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_tight_conversion_is_the_published_minimum(rho: float, delta: float) -> None:
    def at(log_order: float) -> float:
        alpha = 1 + exp(log_order)
        return alpha * rho + log(1 / (alpha * delta)) / (alpha - 1) + log(1 - 1 / alpha)

    least = optimize.minimize_scalar(at, bounds=(-12, 14), method="bounded", options={"xatol": 1e-10}).fun
    closed = rho + 2 * sqrt(rho * log(1 / delta))
    assert epsilon_of(rho, delta) == pytest.approx(max(0.0, min(least, closed)), rel=1e-6, abs=1e-12)
    assert epsilon_of(rho, delta) <= epsilon_of(rho, delta, conversion="closed-form")


@pytest.mark.parametrize("rho", [1e-4, 0.0143, 0.5])
def test_conversions_agree_with_dp_accounting(rho: float) -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    delta = 1e-9
    orders = [1 + 10 ** (k / 200) for k in range(-200, 1200)]
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / sqrt(2 * rho)))
    theirs = accountant.get_epsilon(delta)
    assert epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-3)


def test_the_closed_form_is_the_papers() -> None:
    rho, delta = 0.01, 1e-9
    assert epsilon_of(rho, delta, conversion="closed-form") == pytest.approx(rho + 2 * sqrt(rho * log(1 / delta)))
    epsilon = 1.0
    published = epsilon + 2 * (log(1 / delta) - sqrt(log(1 / delta) * (epsilon + log(1 / delta))))
    assert float(rho_of(epsilon, delta, conversion="closed-form")) == pytest.approx(published, rel=1e-8)


def test_gains_of_the_tight_conversion_on_adult() -> None:
    delta = 1 / 48_842**2
    gains = [rho_of(e, delta) / rho_of(e, delta, conversion="closed-form") for e in (0.1, 1.0)]
    assert [round(float(gain), 2) for gain in gains] == [1.45, 1.26]


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-4, 20), st.floats(1e-15, 1e-2), st.sampled_from(["tight", "closed-form"]))
def test_what_may_be_spent_stays_within_what_was_asked(epsilon: float, delta: float, conversion: str) -> None:
    rho = rho_of(epsilon, delta, conversion=conversion)
    assert rho > 0
    assert epsilon_of(rho, delta, conversion=conversion) <= epsilon
    assert epsilon_of(rho * Fraction(1001, 1000), delta, conversion=conversion) > epsilon


def test_pure_and_selection_losses() -> None:
    assert rho_of_pure(Fraction(1, 2)) == Fraction(1, 8)
    assert rho_of_selection(Fraction(1, 2)) == Fraction(1, 32)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**6))
def test_roots_are_rounded_down(square: Fraction) -> None:
    root = root_below(square)
    assert root**2 <= square
    assert (root + Fraction(1, 2**39)) ** 2 > square


@pytest.mark.parametrize("delta", [0, 1, -1, 2, float("nan"), "0.1", True])
def test_bad_deltas_are_refused(delta: float) -> None:
    with pytest.raises(BadSetting, match="delta must lie strictly between 0 and 1"):
        epsilon_of(0.1, delta)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1"])
def test_bad_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(BadSetting, match="epsilon must be a positive number"):
        rho_of(epsilon, 1e-9)
