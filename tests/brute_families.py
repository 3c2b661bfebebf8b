"""The answers of the families in examples/families, found by ways that their rules do not use.

Each function takes the parameters of a family and counts, builds or solves outright; SMALL says for which parameters
that is feasible, in the language of rules, and how many draws are compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import comb, factorial, gcd, log, prod
from typing import Any

BRUTE: dict[str, Callable[..., Any]] = {}
SMALL: dict[str, str] = {}


def brute(name: str, small: str = "True") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        BRUTE[name], SMALL[name] = function, small
        return function

    return note


# Tools


def det(rows: Iterable[Iterable[int]]) -> Fraction:
    """A determinant by elimination."""
    a, result = [[Fraction(x) for x in row] for row in rows], Fraction(1)
    for i in range(len(a)):
        at = next((r for r in range(i, len(a)) if a[r][i]), None)
        if at is None:
            return Fraction(0)
        if at != i:
            a[i], a[at], result = a[at], a[i], -result
        result *= a[i][i]
        for r in range(i + 1, len(a)):
            factor = a[r][i] / a[i][i]
            a[r] = [x - factor * y for x, y in zip(a[r], a[i], strict=True)]
    return result


def solve(rows: Sequence[Sequence[Fraction | int]], right: Sequence[Fraction | int]) -> list[Fraction]:
    """The solution of a regular system."""
    a = [[Fraction(x) for x in (*row, y)] for row, y in zip(rows, right, strict=True)]
    for i in range(len(a)):
        at = next(r for r in range(i, len(a)) if a[r][i])
        a[i], a[at] = a[at], a[i]
        a[i] = [x / a[i][i] for x in a[i]]
        for r in range(len(a)):
            if r != i and a[r][i]:
                factor = a[r][i]
                a[r] = [x - factor * y for x, y in zip(a[r], a[i], strict=True)]
    return [row[-1] for row in a]


def rank(rows: Iterable[Iterable[int]], p: int) -> int:
    a, found = [[x % p for x in row] for row in rows], 0
    for column in range(len(a[0]) if a else 0):
        at = next((r for r in range(found, len(a)) if a[r][column]), None)
        if at is None:
            continue
        a[found], a[at] = a[at], a[found]
        inverse = pow(a[found][column], -1, p)
        for r in range(found + 1, len(a)):
            factor = a[r][column] * inverse % p
            if factor:
                a[r] = [(x - factor * y) % p for x, y in zip(a[r], a[found], strict=True)]
        found += 1
    return found


def times(f: Sequence[Any], g: Sequence[Any]) -> list[Any]:
    """The product of two polynomials, lowest coefficient first."""
    out = [Fraction(0)] * (len(f) + len(g) - 1)
    for i, x in enumerate(f):
        for j, y in enumerate(g):
            out[i + j] += x * y
    return out


def spanning_trees(vertices: int, edges: Sequence[tuple[int, int]]) -> int:
    """Sets of edges without a cycle that reach every vertex."""
    found = 0
    for chosen in combinations(edges, vertices - 1):
        root = list(range(vertices))
        for u, v in chosen:
            while root[u] != u:
                u = root[u]
            while root[v] != v:
                v = root[v]
            if u == v:
                break
            root[u] = v
        else:
            found += 1
    return found


def walks(step: Callable[[Any], Iterable[Any]], start: Any, end: Any, length: int) -> int:
    here = Counter([start])
    for _ in range(length):
        there: Counter[Any] = Counter()
        for place, count in here.items():
            for following in step(place):
                there[following] += count
        here = there
    return here[end]


def cycle_lengths(order: Sequence[int]) -> list[int]:
    seen: set[int] = set()
    found = []
    for start in range(len(order)):
        length, at = 0, start
        while at not in seen:
            seen.add(at)
            at, length = order[at], length + 1
        if length:
            found.append(length)
    return found


# Combinatorics


@brute("necklaces", "k ** n <= 20000")
def _(n: int, k: int) -> int:
    return len({min(w[i:] + w[:i] for i in range(n)) for w in product(range(k), repeat=n)})


@brute("bracelets", "k ** n <= 20000")
def _(n: int, k: int) -> int:
    return len(
        {min(v[i:] + v[:i] for v in (w, w[::-1]) for i in range(n)) for w in product(range(k), repeat=n)}
    )


@brute(
    "solid-colorings",
    'k ** (8 if parts == "vertices of a cube" else 12 if parts == "edges of a cube" else 6) <= 20000',
)
def _(parts: str, k: int) -> int:
    def turned(matrix: Sequence[tuple[int, int]], x: Sequence[int]) -> tuple[int, ...]:
        return tuple(sign * x[at] for at, sign in matrix)

    rotations = [
        tuple(zip(order, signs, strict=True))
        for order in permutations(range(3))
        for signs in product((1, -1), repeat=3)
        if prod(signs) * (-1) ** sum(a > b for a, b in combinations(order, 2)) == 1
    ]
    cube = list(product((1, -1), repeat=3))
    points = [frozenset([x]) for x in product((1, 0, -1), repeat=3)]
    if "tetrahedron" in parts:
        corners = [x for x in cube if prod(x) == 1]
        rotations = [m for m in rotations if {turned(m, x) for x in corners} == set(corners)]
        points = [frozenset(x) for x in combinations(corners, 2 if "edges" in parts else 3)]
    else:
        zeros = {"faces of a cube": 2, "vertices of a cube": 0, "edges of a cube": 1}[parts]
        points = [x for x in points if next(iter(x)).count(0) == zeros]
    index = {x: i for i, x in enumerate(points)}
    moves = [[index[frozenset(turned(m, y) for y in x)] for x in points] for m in rotations]
    return len(
        {min(tuple(w[i] for i in move) for move in moves) for w in product(range(k), repeat=len(points))}
    )


@brute("weighted-ballot", "binomial(a + b, b) <= 3000")
def _(a: int, b: int, k: int) -> int:
    def leads(places: set[int]) -> bool:
        mine = theirs = 0
        for vote in range(a + b):
            mine, theirs = mine + (vote not in places), theirs + (vote in places)
            if mine <= k * theirs:
                return False
        return True

    return sum(leads(set(places)) for places in combinations(range(a + b), b))


@brute("paths-below-a-line", "binomial(m + n, n) <= 5000")
def _(m: int, n: int, t: int) -> int:
    def avoids(up: set[int]) -> bool:
        x = y = 0
        for step in range(m + n):
            x, y = x + (step not in up), y + (step in up)
            if y == x + t:
                return False
        return True

    return sum(avoids(set(up)) for up in combinations(range(m + n), n))


@brute("partly-deranged", "n <= 8")
def _(n: int, m: int) -> int:
    return sum(all(order[i] != i for i in range(m)) for order in permutations(range(n)))


@brute("surjections-that-separate", "k ** n <= 50000")
def _(n: int, k: int) -> int:
    return sum(f[0] != f[1] and len(set(f)) == k for f in product(range(k), repeat=n))


@brute("seats-around-a-table", "binomial(n, k) <= 6000")
def _(n: int, k: int, d: int) -> int:
    return sum(
        all(min(b - a, n - b + a) > d for a, b in combinations(chosen, 2))
        for chosen in combinations(range(n), k)
    )


@brute("bounded-compositions", "m ** k <= 20000")
def _(n: int, k: int, m: int) -> int:
    return sum(sum(x) == n for x in product(range(1, m + 1), repeat=k))


@brute("three-row-tableaux")
def _(a: int, b: int, c: int) -> int:
    @cache
    def count(*shape: int) -> int:
        """The largest entry stands in a corner: take it away."""
        if not any(shape):
            return 1
        total = 0
        for i, row in enumerate(shape):
            if row and (i == len(shape) - 1 or row > shape[i + 1]):
                total += count(*shape[:i], row - 1, *shape[i + 1 :])
        return total

    return count(a, b, c)


@brute("teams-without-singles", "n <= 9")
def _(n: int, k: int) -> int:
    def splits(people: int) -> Iterator[list[int]]:
        if not people:
            yield []
            return
        for teams in splits(people - 1):
            for i in range(len(teams)):
                yield [*teams[:i], teams[i] + 1, *teams[i + 1 :]]
            yield [*teams, 1]

    return sum(len(teams) == k and min(teams) > 1 for teams in splits(n))


@brute("sparse-subsets", "n <= 13")
def _(n: int, d: int) -> int:
    return sum(
        all(b - a > d for a, b in pairwise(chosen))
        for size in range(n + 1)
        for chosen in combinations(range(n), size)
    )


# Number theory


@brute("zeros-of-a-factorial", "n <= 600")
def _(n: int, b: int) -> int:
    rest, zeros = factorial(n), 0
    while rest % b == 0:
        rest, zeros = rest // b, zeros + 1
    return zeros


@brute("binomial-valuation")
def _(n: int, k: int, p: int) -> int:
    rest, e = comb(n, k), 0
    while rest % p == 0:
        rest, e = rest // p, e + 1
    return e


@brute("two-congruences")
def _(m: int, n: int, a: int, b: int) -> int:
    return next(x for x in range(1, m * n + 1) if x % m == a and x % n == b)


@brute("powers-modulo-pq")
def _(p: int, q: int, k: int) -> int:
    return len({x**k % (p * q) for x in range(p * q)})


@brute("square-roots-of-one")
def _(n: int) -> int:
    return sum(x * x % n == 1 for x in range(n))


@brute("sum-of-gaps")
def _(a: int, b: int) -> int:
    paid = {a * x + b * y for x in range(b) for y in range(a)}
    return sum(x for x in range(1, a * b) if x not in paid)


@brute("tower-modulo", "c <= 8 and b ** c <= 20000")
def _(a: int, b: int, c: int, m: int) -> int:
    rest = 1
    for _ in range(b**c):
        rest = rest * a % m
    return rest


@brute("sum-of-gcds")
def _(n: int) -> int:
    return sum(gcd(k, n) for k in range(1, n + 1))


@brute("points-of-exact-order", "n <= 60")
def _(n: int) -> int:
    def order(x: int, y: int) -> int:
        return next(k for k in range(1, n + 1) if k * x % n == 0 == k * y % n)

    return sum(order(x, y) == n for x in range(n) for y in range(n))


# Algebra

FIELDS = {4: (2, 0b111), 8: (3, 0b1011)}  # degree over F_2, and a polynomial of the generator


def field(q: int) -> tuple[Callable[[int, int], int], Callable[[int, int], int]]:
    """Addition and multiplication of the field with q elements, written 0 .. q - 1."""
    if q in FIELDS:
        degree, modulus = FIELDS[q]

        def multiply(x: int, y: int) -> int:
            out = 0
            for i in range(degree):
                out ^= (x << i) * (y >> i & 1)
            for i in range(2 * degree, degree - 1, -1):
                out ^= (modulus << i - degree) * (out >> i & 1)
            return out

        return lambda x, y: x ^ y, multiply
    if q == 9:  # u + 3v stands for u + vi with i^2 = -1

        def gauss(x: int, y: int) -> int:
            (v, u), (t, s) = divmod(x, 3), divmod(y, 3)
            return (u * s - v * t) % 3 + 3 * ((u * t + v * s) % 3)

        return lambda x, y: (x + y) % 3 + 3 * ((x // 3 + y // 3) % 3), gauss
    return lambda x, y: (x + y) % q, lambda x, y: x * y % q


@brute("irreducible-polynomials", "q ** n <= 1500")
def _(n: int, q: int) -> int:
    add, multiply = field(q)
    reducible = set()
    for low in range(1, n // 2 + 1):
        for f in product(range(q), repeat=low):
            for g in product(range(q), repeat=n - low):
                out = [0] * (n + 1)
                for i, x in enumerate((*f, 1)):
                    for j, y in enumerate((*g, 1)):
                        out[i + j] = add(out[i + j], multiply(x, y))
                reducible.add(tuple(out))
    return int(q**n) - len(reducible)


@brute("homomorphisms")
def _(a: int, b: int, c: int, d: int) -> int:
    def killed(order: int) -> int:
        return sum(order * x % c == 0 == order * y % d for x in range(c) for y in range(d))

    return killed(a) * killed(b)


@brute("subgroups-of-rank-two", "m * n <= 48")
def _(m: int, n: int) -> int:
    elements = list(product(range(m), range(n)))
    return len({closure(g, h, m, n) for g, h in product(elements, repeat=2)})


def closure(g: tuple[int, int], h: tuple[int, int], m: int, n: int) -> frozenset[tuple[int, int]]:
    found, new = {(0, 0)}, [(0, 0)]
    while new:
        x, y = new.pop()
        for u, v in (g, h):
            z = (x + u) % m, (y + v) % n
            if z not in found:
                found.add(z)
                new.append(z)
    return frozenset(found)


@brute("matrices-of-a-rank", "q ** (m * n) <= 7000")
def _(m: int, n: int, r: int, q: int) -> int:
    return sum(
        rank([entries[i * n : i * n + n] for i in range(m)], q) == r
        for entries in product(range(q), repeat=m * n)
    )


@brute("centralizers", "a + 2 * b + l * c <= 7")
def _(a: int, b: int, c: int, l: int) -> int:  # noqa: E741  (the family's own name)
    pi: list[int] = []
    for length in [1] * a + [2] * b + [l] * c:
        start = len(pi)
        pi += [start + (i + 1) % length for i in range(length)]
    return sum(all(pi[s[i]] == s[pi[i]] for i in range(len(pi))) for s in permutations(range(len(pi))))


@brute("power-sums")
def _(e1: int, e2: int, e3: int, n: int) -> int:
    """The trace of a power of the companion matrix."""
    companion = [[0, 0, e3], [1, 0, -e2], [0, 1, e1]]
    power = [[int(i == j) for j in range(3)] for i in range(3)]
    for _ in range(n):
        power = [[sum(power[i][k] * companion[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    return sum(power[i][i] for i in range(3))


# Linear algebra


@brute("tridiagonal-determinant")
def _(n: int, a: int, b: int, c: int) -> Fraction:
    return det([[{0: a, 1: b, -1: c}.get(j - i, 0) for j in range(n)] for i in range(n)])


@brute("smith-determinant")
def _(n: int, s: int, t: int) -> Fraction:
    return det([[t * gcd(i, j) ** s for j in range(1, n + 1)] for i in range(1, n + 1)])


@brute("diagonal-plus-constant")
def _(n: int, a: int, c: int) -> Fraction:
    return det([[c + (a + i if i == j else 0) for j in range(1, n + 1)] for i in range(1, n + 1)])


# Probability


@brute("distinct-faces", "s ** n <= 20000")
def _(s: int, n: int, k: int) -> Fraction:
    total = sum(list(Counter(rolls).values()).count(k) for rolls in product(range(s), repeat=n))
    return Fraction(total, s**n)


@brute("gamblers-ruin")
def _(i: int, n: int, u: int, v: int) -> Fraction:
    p = Fraction(u, v)
    rows, right = [], []
    for x in range(n + 1):
        row = [Fraction(0)] * (n + 1)
        row[x] = Fraction(1)
        if 0 < x < n:
            row[x + 1] -= p
            row[x - 1] -= 1 - p
        rows.append(row)
        right.append(int(x == n))
    return solve(rows, right)[i]


@brute("waiting-for-a-pattern")
def _(s: int, w: tuple[int, ...]) -> Fraction:
    """State k: the last k rolls begin the pattern, and no more do."""
    length = len(w)
    rows = []
    for k in range(length):
        row = [Fraction(0)] * length
        row[k] += 1
        for face in range(1, s + 1):
            rolls = (*w[:k], face)
            after = next(j for j in range(k + 1, -1, -1) if rolls[len(rolls) - j :] == w[:j])
            if after < length:
                row[after] -= Fraction(1, s)
        rows.append(row)
    return solve(rows, [1] * length)[0]


@brute("no-long-cycle", "n <= 8")
def _(n: int, m: int) -> Fraction:
    return Fraction(sum(max(cycle_lengths(order)) <= m for order in permutations(range(n))), factorial(n))


@brute("polya-urn")
def _(r: int, b: int, c: int, n: int, k: int) -> Fraction:
    total = Fraction(0)
    for draws in product((0, 1), repeat=n):
        if sum(draws) == k:
            red, blue, chance = r, b, Fraction(1)
            for is_red in draws:
                chance *= Fraction(red if is_red else blue, red + blue)
                red, blue = red + c * is_red, blue + c * (1 - is_red)
            total += chance
    return total


@brute("runs-in-a-row", "a + b + c <= 7")
def _(a: int, b: int, c: int) -> Fraction:
    rows = set(permutations("r" * a + "b" * b + "g" * c))
    return Fraction(sum(1 + sum(x != y for x, y in pairwise(row)) for row in rows), len(rows))


# Analysis


@brute("beta-integral")
def _(a: int, b: int, c: int) -> Fraction:
    f: list[Any] = [0] * a + [1]
    for _ in range(b):
        f = times(f, [1] + [0] * (c - 1) + [-1])
    return sum((Fraction(x) / (i + 1) for i, x in enumerate(f)), Fraction(0))


@brute("trigonometric-integral")
def _(a: int, b: int) -> Fraction:
    """In z = e^(ix) the mean over the circle is the constant term of ((z - 1/z)/2i)^2a ((z + 1/z)/2)^2b."""
    f: list[Any] = [Fraction(1)]
    for _ in range(2 * a):
        f = times(f, [-1, 0, 1])
    for _ in range(2 * b):
        f = times(f, [1, 0, 1])
    return Fraction(2 * f[2 * a + 2 * b] * (-1) ** a, 4 ** (a + b))


@brute("telescoping-sum")
def _(s: int, m: int) -> float:
    """Two thousand summands, and the integral from the next half on, which is right to some 10^-11."""
    end = 2000
    return sum(1 / (k * (k + m)) for k in range(s, end + 1)) + log((end + 0.5 + m) / (end + 0.5)) / m


@brute("series-coefficient")
def _(n: int, a: int, b: int) -> int:
    series = [1] + [0] * n
    for ratio in (a, a, b):
        for i in range(1, n + 1):
            series[i] += ratio * series[i - 1]
    return series[n]


@brute("high-derivative")
def _(k: int, m: int, a: int, j: int) -> int:
    n = k + m * j
    series: list[int] = []
    for i in range(n + 1):
        series.append(int(i == k) - (a * series[i - m] if i >= m else 0))
    return factorial(n) * series[n]


# Graphs


@brute("trees-without-a-matching", "n <= 6")
def _(n: int, k: int) -> int:
    removed = {(2 * i, 2 * i + 1) for i in range(k)}
    return spanning_trees(n, [edge for edge in combinations(range(n), 2) if edge not in removed])


@brute("trees-of-fans-and-wheels", "n <= 6")
def _(kind: str, n: int) -> int:
    path = [(i, i + 1) for i in range(n - 1)]
    spokes = [(i, n) for i in range(n)]
    if kind == "fan":
        return spanning_trees(n + 1, path + spokes)
    if kind == "wheel":
        return spanning_trees(n + 1, [*path, (n - 1, 0), *spokes])
    return spanning_trees(2 * n, path + [(n + u, n + v) for u, v in path] + [(i, n + i) for i in range(n)])


@brute("ladder-colorings", "k ** (2 * n) <= 70000")
def _(n: int, k: int) -> int:
    path = [(i, i + 1) for i in range(n - 1)]
    edges = path + [(n + u, n + v) for u, v in path] + [(i, n + i) for i in range(n)]
    return sum(all(w[u] != w[v] for u, v in edges) for w in product(range(k), repeat=2 * n))


@brute("bipartite-resistance", "m <= 7 and n <= 7")
def _(m: int, n: int, r: int, place: str) -> Fraction:
    """One ampere in at vertex 0 and out at another one, which is grounded."""
    out = 1 if place == "on the first side" else m
    rows, right = [], []
    for x in range(m + n):
        row = [Fraction(0)] * (m + n)
        for y in range(m + n):
            if (x < m) != (y < m):
                row[x] += Fraction(1, r)
                row[y] -= Fraction(1, r)
        if x == out:
            row = [Fraction(int(y == out)) for y in range(m + n)]
        rows.append(row)
        right.append(int(x == 0))
    return solve(rows, right)[0]


@brute("walks-on-a-cube")
def _(n: int, h: int) -> int:
    return walks(lambda x: [x ^ 1 << i for i in range(n)], 0, 0, 2 * h)


@brute("closed-walks")
def _(n: int, k: int) -> int:
    return walks(lambda x: [y for y in range(n) if y != x], 0, 1, k)


# Topology and geometry


@brute("skeleton-homology", "n <= 8")
def _(n: int, d: int) -> int:
    """Cycles of dimension d, by the rank of the boundary; there is nothing above them."""
    cells = list(combinations(range(n), d + 1))
    faces = {face: i for i, face in enumerate(combinations(range(n), d))}
    rows = []
    for cell in cells:
        row = [0] * len(faces)
        for i in range(d + 1):
            row[faces[cell[:i] + cell[i + 1 :]]] = (-1) ** i
        rows.append(row)
    return len(cells) - rank(rows, 32003)


@brute("subgroups-of-a-free-group", "factorial(k) ** r <= 20000")
def _(k: int, r: int) -> int:
    """Transitive actions on k points, up to the names of all points but the first."""
    found = 0
    for generators in product(permutations(range(k)), repeat=r):
        reached, new = {0}, [0]
        while new:
            x = new.pop()
            for g in generators:
                if g[x] not in reached:
                    reached.add(g[x])
                    new.append(g[x])
        found += len(reached) == k
    return found // factorial(k - 1)


@brute("concurrent-lines", "n <= 16")
def _(n: int, m: int, p: int) -> int:
    """Vertices and edges of random lines y = ax + b, and Euler's formula."""
    rng = random.Random(n * 10000 + m * 100 + p)
    slopes = [Fraction(x, 997) for x in rng.sample(range(1, 10**6), n - p + 1)]
    shifts = [Fraction(x, 991) for x in rng.sample(range(1, 10**6), n)]
    lines = [(slopes[i], Fraction(0)) for i in range(m)]
    lines += [(slopes[m], shifts[i]) for i in range(p)]
    lines += [(slopes[m + 1 + i], shifts[p + i]) for i in range(n - m - p)]
    on: dict[int, set[Fraction]] = {i: set() for i in range(n)}
    points = set()
    for (i, (a, b)), (j, (c, e)) in combinations(enumerate(lines), 2):
        if a != c:
            x = (e - b) / (a - c)
            points.add((x, a * x + b))
            on[i].add(x)
            on[j].add(x)
    edges = sum(len(found) + 1 for found in on.values())
    return 1 + edges - len(points)
