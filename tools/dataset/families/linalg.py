"""Linear algebra: factorisations and what uses them.

Lowered for TPU, `cholesky` and `triangular-solve` stay opcodes of HLO (and run on a CPU too);
lowered for CPU they are custom calls into LAPACK.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import linalg
from jax.scipy.sparse.linalg import cg

from families.layers import program
from lowering import KEY, abstract, lower

SIZE, BATCH = 8, 3
MATRIX, MATRICES, VECTOR = abstract(SIZE, SIZE), abstract(BATCH, SIZE, SIZE), abstract(SIZE)


def positive(matrix):
    """A symmetric positive definite matrix from any."""
    return matrix @ matrix.swapaxes(-1, -2) + SIZE * jnp.eye(SIZE)


def cholesky_solve(matrix, right):
    """Energy of a positive definite system solved by Cholesky, refined once, with gradient"""

    def energy(matrix, right):
        system = positive(matrix)
        factor = lax.linalg.cholesky(system)
        solve = functools.partial(lax.linalg.triangular_solve, factor, left_side=True, lower=True)
        found = solve(solve(right[:, None]), transpose_a=True)
        residual = right[:, None] - system @ found
        found = found + solve(solve(residual), transpose_a=True)
        return 0.5 * jnp.sum(found * (system @ found)) - right @ found[:, 0]

    return jax.value_and_grad(energy, argnums=(0, 1))(matrix, right)


def log_determinant(matrices):
    """Log-determinants of a batch and their gradients"""
    factor = lax.linalg.cholesky(positive(matrices))
    return 2 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))


def gaussian_process(x, y, asked, scales):
    """Marginal likelihood of a Gaussian process and its prediction"""

    def kernel(a, b):
        distances = jnp.sum(jnp.square((a[:, None] - b[None]) / scales), axis=-1)
        return jnp.exp(-0.5 * distances)

    factor = linalg.cho_factor(kernel(x, x) + 0.1 * jnp.eye(x.shape[0]), lower=True)
    weights = linalg.cho_solve(factor, y)
    cross = kernel(x, asked)
    half = linalg.solve_triangular(factor[0], cross, lower=True)
    fit = -0.5 * y @ weights - jnp.sum(jnp.log(jnp.diagonal(factor[0])))
    return fit, cross.T @ weights, 1.0 - jnp.sum(half**2, axis=0)


def kalman_filter(transition, observation, noise, observations):
    """Kalman filter over a series, with a Cholesky solve in each step"""
    size, seen = transition.shape[0], observation.shape[0]

    def step(carry, observed):
        mean, spread = carry
        mean, spread = transition @ mean, transition @ spread @ transition.T + 0.1 * jnp.eye(size)
        gap = observation @ spread @ observation.T + noise @ noise.T + jnp.eye(seen)
        factor = lax.linalg.cholesky(gap)
        cross = observation @ spread
        half = lax.linalg.triangular_solve(factor, cross, left_side=True, lower=True)
        surprise = lax.linalg.triangular_solve(
            factor, (observed - observation @ mean)[:, None], left_side=True, lower=True
        )
        mean = mean + (half.T @ surprise)[:, 0]
        spread = spread - half.T @ half
        likelihood = -0.5 * jnp.sum(surprise**2) - jnp.sum(jnp.log(jnp.diagonal(factor)))
        return (mean, spread), (mean, likelihood)

    start = (jnp.zeros(size), jnp.eye(size))
    _, (means, likelihoods) = lax.scan(step, start, observations)
    return means, jnp.sum(likelihoods)


def natural_gradient(weights, x, y):
    """Newton steps of logistic regression, each with a damped Hessian"""

    def loss(weights):
        return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ weights)))) + 1e-3 * weights @ weights

    def step(_, weights):
        hessian = jax.hessian(loss)(weights) + 1e-4 * jnp.eye(weights.shape[0])
        factor = linalg.cho_factor(hessian)
        return weights - linalg.cho_solve(factor, jax.grad(loss)(weights))

    return lax.fori_loop(0, 5, step, weights)


def robust_regression(x, y):
    """Robust regression: least squares by QR, reweighted in each step of a scan"""

    def step(weights, _):
        root = jnp.sqrt(1 / jnp.maximum(jnp.abs(y - x @ weights), 0.1))
        q, r = jnp.linalg.qr(root[:, None] * x)
        found = linalg.solve_triangular(r, q.T @ (root * y))
        return found, jnp.linalg.norm(found - weights)

    weights, changes = lax.scan(step, jnp.zeros(x.shape[1]), None, length=5)
    return weights, changes, jnp.median(jnp.abs(y - x @ weights))


def principal_components(x):
    """Principal components by eigh: projections, reconstruction, and outliers by distance"""
    scaled = (x - jnp.mean(x, axis=0)) / (jnp.std(x, axis=0) + 1e-6)
    values, vectors = jnp.linalg.eigh(scaled.T @ scaled / x.shape[0])
    best, share = vectors[:, ::-1][:, :3], values[::-1] / jnp.sum(values)
    projected = scaled @ best
    gap = jnp.sum((scaled - projected @ best.T) ** 2, axis=1)
    distance = jnp.sum(projected**2 / values[::-1][:3], axis=1)
    return projected, jnp.cumsum(share), gap > 3 * jnp.median(gap), jnp.argsort(distance)


def matrix_completion(matrix, known):
    """Matrix completion: singular values shrunk in each step of a scan (soft-impute)"""

    def step(found, _):
        filled = jnp.where(known > 0, matrix, found)
        u, s, vh = jnp.linalg.svd(filled, full_matrices=False)
        shrunk = jnp.maximum(s - 0.1, 0.0)
        return (u * shrunk) @ vh, jnp.sum(shrunk > 0)

    found, ranks = lax.scan(step, jnp.zeros_like(matrix), None, length=6)
    return found, ranks, jnp.sum(known * (found - matrix) ** 2)


def linear_solve(matrix, right):
    """LU solve, determinant and inverse"""
    sign, size = jnp.linalg.slogdet(matrix)
    return jnp.linalg.solve(matrix, right), sign * size, jnp.linalg.inv(matrix)


def matrix_exponential(matrix):
    """Matrix exponential by scaling and squaring"""
    return linalg.expm(matrix)


def conjugate_gradient(matrix, right):
    """Conjugate gradients with a Jacobi preconditioner"""
    system = positive(matrix)
    found, _ = cg(lambda x: system @ x, right, maxiter=20, M=lambda x: x / jnp.diagonal(system))
    return found, system @ found - right


def power_iteration(matrix, key):
    """Leading singular values by randomised subspace iteration"""
    basis = jax.random.normal(key, (SIZE, 3))

    def step(basis, _):
        found, _ = jnp.linalg.qr(matrix @ (matrix.T @ basis))
        return found, None

    basis, _ = lax.scan(step, basis, None, length=4)
    return jnp.linalg.norm(matrix.T @ basis, axis=0), basis


def whitening(x):
    """Whitening of a batch by Cholesky's factor of its covariance, with gradient"""

    def loss(x):
        centred = x - jnp.mean(x, axis=0)
        factor = lax.linalg.cholesky(centred.T @ centred / x.shape[0] + 0.1 * jnp.eye(SIZE))
        white = lax.linalg.triangular_solve(factor, centred.T, left_side=True, lower=True)
        return jnp.mean(jnp.sum(white**4, axis=0))

    return jax.value_and_grad(loss)(x)


TALL = abstract(12, SIZE)
ON_BOTH = {
    cholesky_solve: (MATRIX, VECTOR),
    gaussian_process: (abstract(10, 3), abstract(10), abstract(4, 3), abstract(3)),
    robust_regression: (TALL, abstract(12)),
    principal_components: (TALL,),
    matrix_completion: (MATRIX, MATRIX),
}
ON_TPU = {
    kalman_filter: (MATRIX, abstract(4, SIZE), abstract(4, 4), abstract(20, 4)),
    natural_gradient: (VECTOR, TALL, abstract(12)),
    whitening: (TALL,),
    power_iteration: (MATRIX, KEY),
}
ON_CPU = {
    # Lowered for TPU, LU is a custom call that no other backend knows.
    linear_solve: (MATRIX, VECTOR),
    matrix_exponential: (MATRIX,),
    conjugate_gradient: (MATRIX, VECTOR),
}


def of(function, arguments, platform, gradient=False):
    name = function.__name__.replace("_", "-") + ("-gradient" if gradient else "")
    made = jax.value_and_grad(function) if gradient else function
    what = f"{function.__doc__}, lowered for {platform.upper()}."

    def build():
        return lower(made, *arguments, platform=platform, name=function.__name__)

    kind = "gradient" if gradient else "other"
    return program("linalg", f"{name}-{platform}", what, build, kind, platform=platform)


def specs():
    for function, arguments in ON_BOTH.items():
        yield of(function, arguments, "tpu")
        yield of(function, arguments, "cpu")
    yield from (of(function, arguments, "tpu") for function, arguments in ON_TPU.items())
    yield from (of(function, arguments, "cpu") for function, arguments in ON_CPU.items())
    yield of(log_determinant, (MATRICES,), "tpu", gradient=True)
    yield of(log_determinant, (MATRICES,), "cpu", gradient=True)
