"""Exact discrete Gaussian noise: this library's tables against OpenDP's vector mechanism, 10^6 draws each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from benchmarks.record import Context, timed
from discreet.privacy.entropy import SystemEntropy
from discreet.privacy.noise import DiscreteGaussian, draw

DRAWS = 1_000_000


def run(context: Context) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    for sigma in (5.0, 600.0):
        theirs = dp.m.make_gaussian(*space, scale=sigma)
        zeros = [0] * DRAWS
        with timed() as peer:
            one = np.array(theirs(zeros))
        with timed() as ours:
            two = draw(DiscreteGaussian(Fraction(sigma) ** 2), DRAWS, SystemEntropy())
        ratio = peer.seconds / ours.seconds
        print(
            f"sigma {sigma:5g}: OpenDP {peer.seconds:6.2f} s, ours {ours.seconds:6.3f} s, {ratio:.0f} times faster "
            f"(standard deviations {one.std():.3f} and {two.std():.3f})"
        )
        context.record("noise", sigma=sigma, opendp=peer.seconds, ours=ours.seconds, ratio=ratio)
