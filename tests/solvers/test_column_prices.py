"""Pricing: what the lists of remembered directions tell is what one product with all lines tells."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifonly.runtime.tuning import ColumnGeneration
from ifonly.solvers.column_prices import Pricer

FEW = ColumnGeneration(many=40, listed=24, directions=3)


def cloud(seed: int, n: int = 300, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(rng.normal(0.0, 3.0, d), rng.uniform(0.01, 5.0, d), (n, d))


@given(seed=st.integers(0, 10_000), near=st.sampled_from([0.0, 0.01, 0.1, 1.0, 10.0]), most=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_bounds_and_lines_are_those_of_all_products(seed, near, most):
    matrix = cloud(seed)
    rng, pricer = np.random.default_rng([seed, 1]), Pricer(matrix, FEW)
    direction = rng.normal(size=matrix.shape[1])
    for _ in range(8):
        products = matrix @ direction
        exact = pricer.least(direction, most)
        assert exact.bound <= products.min() <= exact.bound + 1e-9
        assert exact.products.min() == pytest.approx(products.min(), rel=1e-12, abs=1e-12)
        assert np.allclose(products[exact.which], exact.products)
        below = float(np.quantile(products, rng.choice([0.0, 0.01, 0.5])) + rng.choice([-1.0, 0.0, 1e-9]))
        some = pricer.least(direction, most, below)
        assert some.bound <= products.min()
        assert np.allclose(products[some.which], some.products)
        if (products < below).any():
            assert some.products.min() < below, "a line that is looked for was not found"
        else:
            assert min(some.bound, below) >= below - 1e-9 or some.bound >= products.min() - 1e-9
        direction = direction + near * rng.normal(size=len(direction))


def test_lists_spare_products_with_all_lines():
    """Directions near each other are settled by one list, and a list that is too far away is not believed."""
    matrix = cloud(0, 20_000, 6)
    pricer = Pricer(matrix, ColumnGeneration(many=1000, listed=2000))
    direction = np.ones(6) / matrix.std(axis=0)
    pricer.least(direction)
    counted = Counted(matrix)
    pricer.matrix = counted
    for k in range(6):
        near = direction * (1.0 + 0.02 * np.eye(6)[k])
        assert pricer.least(near).bound == pytest.approx((matrix @ near).min())
    assert counted.times == 0
    assert pricer.least(-direction).bound == pytest.approx((-matrix @ direction).min())
    assert counted.times == 1


class Counted:
    """A matrix that counts the products with all of its lines."""

    def __init__(self, matrix):
        self.matrix, self.times = matrix, 0

    def __len__(self):
        return len(self.matrix)

    def __getitem__(self, lines):
        return self.matrix[lines]

    def __matmul__(self, direction):
        self.times += 1
        return self.matrix @ direction
