"""The mechanisms by name, with their settings and how each is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

from discreet import _check
from discreet.errors import BadSetting, DiscreetError
from discreet.mechanisms import direct, oracles, residual, weights
from discreet.mechanisms.adaptive import Outcome
from discreet.mechanisms.facts import Cost, Facts
from discreet.mechanisms.job import Job
from discreet.privacy.curator import Curator
from discreet.privacy.measurement import require_measurable
from discreet.privacy.neighbours import Neighbours
from discreet.queries.workload import Workload


@dataclass(frozen=True)
class NoSettings:
    """A mechanism with nothing to set."""


@dataclass(frozen=True)
class Mechanism:
    """One way to answer a workload.

    Attributes:
        name: As on the command line.
        settings: A frozen dataclass; its fields are what --set may name.
        run: The mechanism itself.
        check: Refuses a workload that the mechanism cannot take, before anything is charged.
        forecast: What a run will take, from public facts.
        drawable: Refuses a budget whose noise cannot be drawn, also before anything is charged.
        public: Whether it starts from a public table: "no", "whole", or "part" where that may lack attributes.
        conversion: From (epsilon, delta) to zCDP, by default.
    """

    name: str
    settings: type
    run: Callable[[Curator, Job], Outcome]
    check: Callable[[Workload, Any], None]
    forecast: Callable[[Facts], Cost]
    drawable: Callable[[Workload, Any, Fraction, Neighbours], None] = lambda *_: None
    public: str = "no"
    conversion: str = "tight"

    def settings_from(self, given: Mapping[str, object]) -> Any:
        """Settings with some of them changed; text is read as the type of the default."""
        known = {field.name: field for field in fields(self.settings)}
        values = {}
        for name, value in given.items():
            if name not in known:
                listed = ", ".join(known) or "none"
                have = [
                    one.name for one in catalogue().values() if name in {field.name for field in fields(one.settings)}
                ]
                others = f" Mechanisms that have {name}: {', '.join(have)}." if have else ""
                raise BadSetting(f"{self.name} has no setting {name!r}; it has: {listed}.{others}")
            values[name] = _read(name, value, str(known[name].type)) if isinstance(value, str) else value
        return self.settings(**values)


def find(name: str) -> Mechanism:
    """The mechanism of this name."""
    _check.one_of("mechanism", name, catalogue())
    return catalogue()[name]


def taking(workload: Workload) -> list[str]:
    """Mechanisms that take a workload with their own defaults and without a public table, and look at the table."""

    def takes(mechanism: Mechanism) -> bool:
        try:
            mechanism.check(workload, mechanism.settings())
        except DiscreetError:
            return False
        return mechanism.public == "no"

    return [name for name, mechanism in catalogue().items() if name != "all-zero" and takes(mechanism)]


def catalogue() -> dict[str, Mechanism]:
    """Every mechanism, the default first."""
    # These need jax, which loads when it is used.
    from discreet.mechanisms import auto, forecast, gem, graphical, rap, search

    every = [
        Mechanism(
            name="auto",
            settings=auto.Settings,
            run=auto.run,
            check=auto.check,
            drawable=auto.drawable,
            forecast=forecast.of_auto,
        ),
        Mechanism(
            name="rap",
            settings=rap.Settings,
            run=rap.run,
            check=rap.check,
            forecast=forecast.of_rap,
        ),
        Mechanism(
            name="rap-paper",
            settings=rap.PaperSettings,
            run=rap.run_paper,
            check=rap.check,
            forecast=partial(forecast.projected, name="rap-paper"),
            conversion="closed-form",
        ),
        Mechanism(
            name="rap-softmax",
            settings=rap.SoftmaxSettings,
            run=rap.run_paper,
            check=rap.check,
            forecast=partial(forecast.projected, name="rap-softmax"),
        ),
        Mechanism(
            name="rap-search",
            settings=search.Settings,
            run=search.run,
            check=search.check,
            forecast=forecast.searched,
            conversion="closed-form",
        ),
        Mechanism(
            name="gem",
            settings=gem.Settings,
            run=gem.run,
            check=gem.check,
            forecast=partial(forecast.generated, name="gem"),
        ),
        Mechanism(
            name="gem-pub",
            settings=gem.Settings,
            run=gem.run,
            check=gem.check,
            forecast=partial(forecast.generated, name="gem-pub"),
            public="part",
        ),
        Mechanism(
            name="mwem",
            settings=weights.MwemSettings,
            run=weights.run_mwem,
            check=partial(weights.check, mechanism="mwem"),
            forecast=partial(forecast.weighed, name="mwem"),
        ),
        Mechanism(
            name="pep",
            settings=weights.PepSettings,
            run=weights.run_pep,
            check=partial(weights.check, mechanism="pep"),
            forecast=partial(forecast.weighed, name="pep"),
        ),
        Mechanism(
            name="pmw-pub",
            settings=weights.PmwSettings,
            run=weights.run_mwem,
            check=weights.check_schedule,
            forecast=partial(forecast.weighed, name="pmw-pub"),
            public="whole",
        ),
        Mechanism(
            name="pep-pub",
            settings=weights.PepSettings,
            run=weights.run_pep,
            check=weights.check_schedule,
            forecast=partial(forecast.weighed, name="pep-pub"),
            public="whole",
        ),
        Mechanism(
            name="dualquery",
            settings=oracles.DualQuerySettings,
            run=oracles.run_dualquery,
            check=oracles.check,
            forecast=partial(forecast.programmed, name="dualquery"),
        ),
        Mechanism(
            name="fem",
            settings=oracles.FemSettings,
            run=oracles.run_fem,
            check=oracles.check,
            forecast=partial(forecast.programmed, name="fem"),
        ),
        Mechanism(
            name="mst",
            settings=graphical.MstSettings,
            run=graphical.run_mst,
            check=graphical.check_mst,
            forecast=forecast.of_mst,
        ),
        Mechanism(
            name="aim",
            settings=graphical.AimSettings,
            run=graphical.run_aim,
            check=graphical.check_aim,
            forecast=forecast.of_aim,
        ),
        Mechanism(
            name="residual-planner",
            settings=residual.Settings,
            run=residual.run,
            check=residual.check,
            drawable=residual.drawable,
            forecast=forecast.residual_planner,
        ),
        Mechanism(
            name="gaussian",
            settings=NoSettings,
            run=lambda curator, job: direct.gaussian(curator, job.workload, rho=job.rho),
            check=lambda *_: None,
            drawable=direct.drawable,
            forecast=forecast.gaussian,
        ),
        Mechanism(
            name="gaussian-paper",
            settings=NoSettings,
            run=lambda curator, job: direct.gaussian(curator, job.workload, rho=job.rho, priced="singly"),
            check=lambda workload, _: require_measurable(workload.domain, workload.marginals),
            forecast=forecast.gaussian_paper,
            conversion="closed-form",
        ),
        Mechanism(
            name="all-zero",
            settings=NoSettings,
            run=lambda curator, _: direct.all_zero(curator),
            check=lambda *_: None,
            forecast=forecast.all_zero,
        ),
    ]
    return {mechanism.name: mechanism for mechanism in every}


def _read(name: str, text: str, kind: str) -> object:
    """A setting from the command line."""
    if text == "none" and "None" in kind:
        return None
    try:
        if "bool" in kind:
            return {"true": True, "false": False}[text.lower()]
        if "int" in kind:
            return int(text)
        return float(text) if "float" in kind else text
    except (ValueError, KeyError):
        raise BadSetting(f"{name}={text} is not of the right kind ({kind}).") from None
