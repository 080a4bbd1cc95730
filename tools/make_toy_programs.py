"""Write testdata/toy: small programs of the toy compiler in which the order of passes matters.

Needs nothing but Python and gives the same bytes each time:

    python3 tools/make_toy_programs.py
"""

import argparse
import pathlib


class Program:
    """A toy program that is being written; each method adds a line and gives its number."""

    def __init__(self):
        self.lines = []

    def line(self, opcode, *numbers):
        self.lines.append(" ".join([opcode, *map(str, numbers)]))
        return len(self.lines) - 1

    def input(self, which):
        return self.line("input", which)

    def const(self, value):
        return self.line("const", value)

    def add(self, a, b):
        return self.line("add", a, b)

    def mul(self, a, b):
        return self.line("mul", a, b)

    def neg(self, a):
        return self.line("neg", a)

    def copy(self, a):
        return self.line("copy", a)

    def sub(self, a, b):
        return self.add(a, self.neg(b))

    def text(self):
        return "".join(line + "\n" for line in ["toy", *self.lines])


def minimal(p):
    """Nothing can be removed: where a default reduces nothing, a ratio means nothing."""
    x, y, z = p.input(0), p.input(1), p.input(2)
    a = p.mul(x, y)
    b = p.add(a, z)
    c = p.mul(b, a)
    d = p.add(c, x)
    e = p.mul(d, y)
    f = p.add(e, d)
    p.mul(f, z)


def strides(p):
    """Offsets made of constants: only after `fold` is there an `x * 1` or `x + 0` to simplify."""
    x, y = p.input(0), p.input(1)
    width, height, one = p.const(7), p.const(-6), p.const(1)
    stride = p.add(width, height)
    offset = p.add(height, p.mul(p.const(3), p.const(2)))
    row = p.add(p.mul(x, stride), offset)
    column = p.add(p.mul(y, p.mul(stride, one)), p.mul(offset, width))
    place = p.add(row, p.mul(column, p.add(offset, stride)))
    p.add(p.mul(place, stride), p.neg(p.mul(offset, offset)))


def turns(p):
    """Signs turned again and again, with copies between: `simplify` and `copy-elim` in turns."""
    x, y = p.input(0), p.input(1)
    for _ in range(4):
        x = p.copy(p.neg(p.copy(p.neg(p.copy(x)))))
        y = p.neg(p.copy(y))
    p.mul(p.add(x, y), p.neg(p.copy(p.neg(x))))


def polynomial(p):
    """Every term takes its power from the start: `dedup` finds one factor more in each round."""
    x, total = p.input(0), p.const(0)
    for degree, coefficient in enumerate([5, -3, 1, 2, -1]):
        power = p.const(1)
        for _ in range(degree):
            power = p.mul(p.copy(x), power) if degree % 2 else p.mul(x, power)
        total = p.add(p.mul(power, p.const(coefficient)), total)


def trees(p):
    """The same tree of sums three times: as many rounds of `dedup` and `copy-elim` as it is deep."""

    def tree(low, count):
        if count == 1:
            return p.input(low)
        half = count // 2
        return p.add(tree(low, half), tree(low + half, half))

    first, second, third = tree(0, 8), tree(0, 8), tree(0, 8)
    p.mul(p.mul(first, second), third)


def distances(p):
    """Squares of differences: lowered by hand before `dedup`, all negations share one `-1`."""
    points = [[p.input(3 * point + axis) for axis in range(3)] for point in range(4)]
    total = None
    for one in range(4):
        for other in range(one):
            for a, b in zip(points[one], points[other], strict=True):
                square = p.mul(p.sub(a, b), p.sub(a, b))
                total = square if total is None else p.add(total, square)


def cancels(p):
    """Sums of `x + -x` of the same `x`: `cancel` is right here, if it comes before `lower`."""
    x, y = p.input(0), p.input(1)
    product = p.mul(x, y)
    zero = p.add(product, p.neg(product))
    more = p.add(x, p.add(y, p.neg(y)))
    p.mul(p.add(more, zero), p.add(p.copy(product), p.sub(x, x)))


def tempting(p):
    """What looks like `x + -x` is `x + -y`: the shortest program that `cancel` leads to is wrong."""
    x, y, z = p.input(0), p.input(1), p.input(2)
    edges = [p.sub(x, y), p.sub(y, z), p.sub(z, x)]
    one = p.add(p.const(3), p.const(-2))
    area = p.mul(p.mul(edges[0], edges[1]), one)
    p.add(p.mul(area, edges[2]), p.sub(p.mul(x, y), p.mul(y, z)))


def leftovers(p):
    """Half of it is read by nobody, some of that only after other passes: `dead` first and last."""
    x, y = p.input(0), p.input(1)
    kept, lost = x, y
    for step in range(1, 7):
        scale = p.mul(p.const(step), p.const(0))
        kept = p.add(p.mul(kept, y), scale)
        lost = p.add(p.mul(lost, kept), p.neg(p.const(step)))
    p.add(kept, p.copy(p.mul(x, p.add(p.const(2), p.const(-1)))))


def matrices(p):
    """The trace of A * I * A for a matrix of 3 by 3, with every zero and one of I written out."""
    size = range(3)
    a = [[p.input(3 * row + column) for column in size] for row in size]
    unit = [[p.const(int(row == column)) for column in size] for row in size]

    def product(left, right, row, column):
        terms = [p.mul(left[row][k], right[k][column]) for k in size]
        return p.add(p.add(terms[0], terms[1]), terms[2])

    same = [[product(a, unit, row, column) for column in size] for row in size]
    diagonal = [product(same, a, place, place) for place in size]
    p.add(p.add(diagonal[0], diagonal[1]), diagonal[2])


def filters(p):
    """Two passes of a filter over ten samples, its weights computed anew for each of them."""
    samples = [p.input(which) for which in range(10)]
    for _ in range(2):
        filtered = []
        for place in range(1, len(samples) - 1):
            left, middle, right = samples[place - 1 : place + 2]
            weight = p.add(p.const(2), p.const(-1))
            sides = p.add(p.mul(left, weight), p.mul(right, weight))
            filtered.append(p.add(p.mul(middle, p.add(weight, weight)), p.neg(p.neg(sides))))
        samples = filtered
    total = p.const(0)
    for sample in samples:
        total = p.add(sample, total)


def anything(p):
    """180 random lines: what nobody wrote with a pass in mind."""
    luck = 7

    def below(limit):
        nonlocal luck
        luck = (luck * 6364136223846793005 + 1442695040888963407) % 2**64
        return (luck >> 33) % limit

    for which in range(4):
        p.input(which)
    while len(p.lines) < 179:
        last = len(p.lines) - 1
        near, far = last - below(min(last, 12)), below(last)
        [
            lambda: p.add(near, far),
            lambda: p.mul(near, far),
            lambda: p.add(near, last),
            lambda: p.neg(near),
            lambda: p.copy(near),
            lambda: p.const(below(3) - 1),
        ][below(6)]()
    p.add(len(p.lines) - 1, len(p.lines) - 2)


PROGRAMS = [
    minimal,
    strides,
    turns,
    polynomial,
    trees,
    distances,
    cancels,
    tempting,
    leftovers,
    matrices,
    filters,
    anything,
]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "toy"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=pathlib.Path, default=root, help="folder to write (default: testdata/toy)"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for write in PROGRAMS:
        program = Program()
        write(program)
        (options.out / f"{write.__name__}.toy").write_text(program.text())
        # A row of the table in testdata/README.md.
        print(f"| `{write.__name__}` | {len(program.lines)} | {write.__doc__} |")


if __name__ == "__main__":
    main()
