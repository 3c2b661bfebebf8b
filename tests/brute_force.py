"""The known answers of the example problems, found by ways that no candidate uses.

Each function takes the numbers of a question, in the order of the text, and counts, builds or solves outright.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import comb, factorial

PRIME = 32003


def determinant_mod(rows: list[list[int]], p: int) -> int:
    rows, result = [row[:] for row in rows], 1
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i] % p), None)
        if pivot is None:
            return 0
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            result = -result
        result = result * rows[i][i] % p
        inverse = pow(rows[i][i], -1, p)
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] * inverse % p
            if factor:
                rows[r] = [(x - factor * y) % p for x, y in zip(rows[r], rows[i], strict=True)]
    return result % p


def null_vector(rows: list[list[int]], p: int, rng: random.Random) -> list[int]:
    """A random solution of the homogeneous system."""
    rows, width = [row[:] for row in rows], len(rows[0])
    pivots: list[int] = []
    for column in range(width):
        at = next((r for r in range(len(pivots), len(rows)) if rows[r][column] % p), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        inverse = pow(rows[top][column], -1, p)
        rows[top] = [x * inverse % p for x in rows[top]]
        for r in range(len(rows)):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [(x - factor * y) % p for x, y in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    vector = [rng.randrange(p) for _ in range(width)]
    for row, column in zip(rows, pivots, strict=False):
        free = sum(row[j] * vector[j] for j in range(width) if j not in pivots)
        vector[column] = -free % p
    return vector


def divide(top: list[int], bottom: list[int], p: int) -> tuple[list[int], list[int]]:
    """Quotient and remainder of polynomials, lowest coefficient first."""
    rest, inverse = top[:], pow(bottom[-1], -1, p)
    quotient = [0] * max(1, len(top) - len(bottom) + 1)
    for shift in range(len(top) - len(bottom), -1, -1):
        factor = rest[shift + len(bottom) - 1] * inverse % p
        quotient[shift] = factor
        for i, x in enumerate(bottom):
            rest[shift + i] = (rest[shift + i] - factor * x) % p
    while len(rest) > 1 and not rest[-1]:
        rest.pop()
    return quotient, rest


def interpolate(values: list[int], p: int) -> list[int]:
    """The polynomial with these values at 0, 1, 2, ..., by Newton's differences."""
    table, result, basis = values[:], [0] * len(values), [1]
    for k in range(len(values)):
        for i, x in enumerate(basis):
            result[i] = (result[i] + table[k] * x) % p
        for i in range(len(values) - 1, k, -1):
            table[i] = (table[i] - table[i - 1]) * pow(k + 1, -1, p) % p
        basis = [(up - k * down) % p for up, down in zip([0, *basis], [*basis, 0], strict=True)]
    while not result[-1]:
        result.pop()
    return result


def dual_degree(degree: int, nodes: int, cusps: int) -> int:
    """Builds such a curve over a finite field and counts its vertical tangents.

    The discriminant in y has degree d(d-1) in x. What is left of it without the singular points are tangents.
    """
    rng, p = random.Random(degree), PRIME
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    points = [(rng.randrange(p), rng.randrange(p)) for _ in range(nodes + cusps)]
    conditions = []
    for at, (u, v) in enumerate(points):
        slope = rng.randrange(p)  # a cusp's tangent is y - v = slope (x - u)
        orders = [(0, 0), (1, 0), (0, 1)] if at < nodes else [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1)]
        for a, b in orders:  # the Taylor coefficient of s^a t^b at x = u + s, y = v + slope s + t vanishes
            row = []
            for i, j in powers:
                total = 0
                for s in range(j - b + 1):
                    if 0 <= a - s <= i:
                        y = comb(j, b) * comb(j - b, s) * pow(slope, s, p) * pow(v, j - b - s, p)
                        total += y * comb(i, a - s) * pow(u, i - a + s, p)
                row.append(total % p)
            conditions.append(row)
    curve = null_vector(conditions, p, rng)

    def discriminant(x: int) -> int:
        f = [0] * (degree + 1)
        for (i, j), c in zip(powers, curve, strict=True):
            f[j] = (f[j] + c * pow(x, i, p)) % p
        g = [j * f[j] % p for j in range(1, degree + 1)]
        size = 2 * degree - 1
        rows = [[0] * s + f + [0] * (size - s - len(f)) for s in range(degree - 1)]
        rows += [[0] * s + g + [0] * (size - s - len(g)) for s in range(degree)]
        return determinant_mod(rows, p)

    rest = interpolate([discriminant(x) for x in range(degree * (degree - 1) + 1)], p)
    assert len(rest) - 1 == degree * (degree - 1)
    for u, _ in points:
        while True:
            quotient, remainder = divide(rest, [-u % p, 1], p)
            if remainder != [0]:
                break
            rest = quotient
    other, remainder = rest, [k * x % p for k, x in enumerate(rest)][1:]
    while remainder != [0]:  # simple tangents only: the curve has no other singular point
        other, remainder = remainder, divide(other, remainder, p)[1]
    assert len(other) == 1
    return len(rest) - 1


def cycle_colorings(k: int, n: int) -> int:
    return sum(all(x != y for x, y in pairwise((*c, c[0]))) for c in product(range(k), repeat=n))


def necklaces(colors: int, beads: int) -> int:
    return len({min(s[i:] + s[:i] for i in range(beads)) for s in product(range(colors), repeat=beads)})


def valuation(p: int, n: int) -> int:
    number, v = factorial(n), 0
    while number % p == 0:
        number, v = number // p, v + 1
    return v


def expected_rolls(faces: int, length: int) -> int:
    """First-step equations E_i = 1 + E_{i+1} / d + E_0 (d-1) / d, with E_i = a_i + b_i E_0 solved from the end."""
    a, b = Fraction(0), Fraction(0)
    for _ in range(length):
        a, b = 1 + a / faces, b / faces + Fraction(faces - 1, faces)
    value = a / (1 - b)
    assert value.denominator == 1
    return int(value)


def sl3_dimension(p: int, q: int) -> int:
    """Semistandard tableaux with rows of p + q and q cells and entries 1, 2, 3."""
    tableaux = 0
    for top in product((1, 2, 3), repeat=p + q):
        if any(x > y for x, y in pairwise(top)):
            continue
        for low in product((1, 2, 3), repeat=q):
            rows = all(x <= y for x, y in pairwise(low))
            tableaux += rows and all(x < y for x, y in zip(top, low, strict=False))
    return tableaux


def determinant(size: int, diagonal: int, other: int) -> int:
    total = 0
    for order in permutations(range(size)):
        sign = (-1) ** sum(order[i] > order[j] for i, j in combinations(range(size), 2))
        fixed = sum(i == j for i, j in enumerate(order))
        total += sign * diagonal**fixed * other ** (size - fixed)
    return total


def bipartite_trees(m: int, n: int) -> int:
    trees = 0
    for edges in combinations(list(product(range(m), range(m, m + n))), m + n - 1):
        seen, grown = {0}, True
        while grown:
            more = {x for e in edges if seen & set(e) for x in e} - seen
            seen, grown = seen | more, bool(more)
        trees += len(seen) == m + n
    return trees


def gaps(a: int, b: int) -> int:
    reached = {a * x + b * y for x in range(b + 1) for y in range(a + 1)}
    return sum(t not in reached for t in range(1, a * b))


def cycles(order: list[int]) -> int:
    left, count = set(range(len(order))), 0
    while left:
        at, count = left.pop(), count + 1
        while (at := order[at]) in left:
            left.remove(at)
    return count


def covering_genus(degree: int, genus: int, ramified: int) -> int:
    """Counts the cells of a covering given by permutations.

    Below: one base vertex, `ramified` branch vertices each joined to it, 2 genus loops, one face. All handle loops
    go to one cycle through the sheets (their commutators are trivial), the branch loops to equal pairs of swaps.
    """
    assert ramified % 2 == 0
    swap = [1, 0, *range(2, degree)]
    vertices = degree + ramified * cycles(swap)
    edges, faces = degree * (2 * genus + ramified), degree
    assert (2 - vertices + edges - faces) % 2 == 0
    return (2 - vertices + edges - faces) // 2
