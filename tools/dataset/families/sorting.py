"""Sorts and selections: rankings, medians, histograms, nearest neighbours, suppression."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.stats import rankdata

from families.layers import programs
from lowering import abstract, integers, lower

ROWS, SIZE = 4, 24
TABLE, LABELS = abstract(ROWS, SIZE), integers(ROWS, SIZE)


def ranking():
    """Sorts of one, two and three operands, ranks and the inverse permutation."""

    def rank(scores, labels, times):
        ordered, by_score = lax.sort((scores, labels), dimension=1, num_keys=1)
        lexical = lax.sort((labels, scores, times), dimension=1, num_keys=2, is_stable=True)
        order = jnp.argsort(-scores, axis=-1)
        return ordered, by_score, lexical, jnp.argsort(order, axis=-1)

    return lower(rank, TABLE, LABELS, TABLE)


def quantiles():
    """Median, quantiles, a trimmed mean and robust scaling of each row."""

    def robust(table):
        middle = jnp.median(table, axis=1, keepdims=True)
        low, high = jnp.quantile(table, jnp.array([0.25, 0.75]), axis=1, keepdims=True)
        trimmed = jnp.mean(jnp.sort(table, axis=1)[:, 3:-3], axis=1)
        deviation = jnp.median(jnp.abs(table - middle), axis=1)
        return (table - middle) / (high - low + 1e-6), trimmed, deviation

    return lower(robust, TABLE)


def retrieval_metrics():
    """Ranking metrics: precision, reciprocal rank and discounted gain of the top ten."""

    def evaluate(scores, relevance):
        values, places = lax.top_k(scores, 10)
        hits = jnp.take_along_axis(relevance, places, axis=1).astype(jnp.float32)
        discounts = 1 / jnp.log2(jnp.arange(10) + 2.0)
        best, _ = lax.top_k(relevance.astype(jnp.float32), 10)
        gain = jnp.sum(hits * discounts, axis=1) / jnp.maximum(jnp.sum(best * discounts, axis=1), 1)
        first = jnp.argmax(hits > 0, axis=1)
        reciprocal = jnp.where(jnp.any(hits > 0, axis=1), 1.0 / (first + 1), 0.0)
        return jnp.mean(hits), jnp.mean(reciprocal), jnp.mean(gain), values

    return lower(evaluate, TABLE, LABELS)


def nearest_neighbours():
    """Classification by nearest neighbours: distances, top-k, votes by scatter."""

    def classify(known, labels, asked):
        distances = jnp.sum(known**2, axis=1) - 2 * asked @ known.T
        closeness, places = lax.top_k(-distances, 5)
        votes = jax.nn.softmax(closeness)
        tally = jnp.zeros((asked.shape[0], 3))
        rows = jnp.arange(asked.shape[0])[:, None]
        tally = tally.at[rows, labels[places]].add(votes)
        return jnp.argmax(tally, axis=1), tally

    return lower(classify, abstract(SIZE, 8), integers(SIZE), abstract(6, 8))


def suppression():
    """Non-maximum suppression of boxes: sorted by score, a loop over overlaps."""

    def suppress(boxes, scores):
        order = jnp.argsort(-scores)
        boxes = boxes[order]
        low = jnp.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = jnp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        shared = jnp.prod(jnp.maximum(high - low, 0), axis=-1)
        area = jnp.prod(jnp.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=-1)
        overlap = shared / (area[:, None] + area[None] - shared + 1e-6)

        def visit(index, kept):
            earlier = jnp.arange(SIZE) < index
            covered = jnp.any(kept & earlier & (overlap[index] > 0.5))
            return kept.at[index].set(~covered)

        kept = lax.fori_loop(0, SIZE, visit, jnp.ones(SIZE, bool))
        return order, kept, jnp.where(kept, scores[order], 0.0)

    return lower(suppress, abstract(SIZE, 4), abstract(SIZE))


def histogram():
    """Histogram, unique values with counts, and equalisation by the cumulative sum."""

    def equalise(values, labels):
        edges = jnp.linspace(-3.0, 3.0, 17)
        bins = jnp.clip(jnp.searchsorted(edges, values) - 1, 0, 15)
        counts = jnp.zeros(16, jnp.int32).at[bins].add(1)
        distribution = jnp.cumsum(counts) / values.shape[0]
        found, frequency = jnp.unique(labels, return_counts=True, size=8, fill_value=-1)
        return distribution[bins], found, frequency, jnp.bincount(labels, length=10)

    return lower(equalise, abstract(64), integers(64))


def group_by():
    """Table aggregation: rows sorted by key, then sums, maxima and firsts by segment."""

    def aggregate(keys, values):
        keys, values = lax.sort((keys, values), num_keys=1)
        starts = jnp.concatenate([jnp.ones(1, bool), keys[1:] != keys[:-1]])
        segments = jnp.cumsum(starts) - 1
        sums = jax.ops.segment_sum(values, segments, num_segments=16)
        highest = jax.ops.segment_max(values, segments, num_segments=16)
        firsts = jnp.nonzero(starts, size=16, fill_value=0)[0]
        return keys[firsts], sums, highest, values[firsts], segments[-1] + 1

    return lower(aggregate, integers(48), abstract(48))


def area_under_curve():
    """The area under the ROC curve by ranks, and average precision by sorting."""

    def evaluate(scores, labels):
        ranks = rankdata(scores)
        positives = jnp.sum(labels)
        negatives = labels.shape[0] - positives
        area = jnp.sum(ranks * labels) - positives * (positives + 1) / 2
        order = jnp.argsort(scores, descending=True)
        hits = jnp.cumsum(labels[order])
        precision = hits / (jnp.arange(labels.shape[0]) + 1.0)
        average = jnp.sum(precision * labels[order]) / jnp.maximum(positives, 1)
        return area / jnp.maximum(positives * negatives, 1), average

    return lower(evaluate, abstract(32), abstract(32))


def soft_ranking():
    """A differentiable ranking loss: pairwise comparisons, sorted targets, and gradient."""

    def loss(scores, relevance):
        wins = jax.nn.sigmoid(scores[:, :, None] - scores[:, None, :])
        ranks = 1 + jnp.sum(wins, axis=1)
        best = jnp.sort(relevance, axis=1, descending=True)
        ideal = jnp.sum(best / jnp.log2(jnp.arange(SIZE) + 2.0), axis=1)
        return -jnp.mean(jnp.sum(relevance / jnp.log2(1 + ranks), axis=1) / (ideal + 1e-6))

    return lower(jax.value_and_grad(loss), TABLE, TABLE, name="ranking_loss")


def specs():
    yield from programs(
        "sorting",
        (
            ranking, quantiles, retrieval_metrics, nearest_neighbours, suppression, histogram,
            group_by, area_under_curve, soft_ranking,
        ),
    )  # fmt: skip
