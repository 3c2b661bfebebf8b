"""Arithmetic of written matrices: sums, products, multiples, entry by entry and still exact."""

from __future__ import annotations

from functools import reduce

from porism.verify.lexer import Unreadable
from porism.verify.reader import as_node
from porism.verify.syntax import Matrix, Node, Op, Value

MAX_SIZE = 8


def operation(head: str, left: Value, right: Value) -> Value:
    """The expression or matrix that an operator makes of its operands. Raises Unreadable for other structures."""
    if not isinstance(left, Matrix) and not isinstance(right, Matrix):
        return Op(head, (as_node(left), as_node(right)))
    if isinstance(left, Matrix) and isinstance(right, Matrix):
        if head == "mul":
            return _product(left, right)
        if head in ("add", "sub") and _size(left) == _size(right):
            rows = zip(left.rows, right.rows, strict=True)
            return Matrix(
                tuple(tuple(_entry(head, a, b) for a, b in zip(*pair, strict=True)) for pair in rows)
            )
        raise Unreadable("matrices that do not fit")
    if isinstance(right, Matrix) and head == "mul":
        return Matrix(tuple(tuple(_entry(head, left, entry) for entry in row) for row in right.rows))
    if isinstance(left, Matrix) and head in ("mul", "div"):
        return Matrix(tuple(tuple(_entry(head, entry, right) for entry in row) for row in left.rows))
    raise Unreadable("a matrix and a number")


def negative(value: Value) -> Value:
    """The value with the other sign."""
    if isinstance(value, Matrix):
        return Matrix(tuple(tuple(Op("neg", (as_node(entry),)) for entry in row) for row in value.rows))
    return Op("neg", (as_node(value),))


def determinant(matrix: Matrix) -> Node:
    """Expanded along the first row. Raises Unreadable unless the matrix is square and small."""
    rows = matrix.rows
    if len(rows) != len(rows[0]) or len(rows) > 5:
        raise Unreadable("a determinant")
    if len(rows) == 1:
        return as_node(rows[0][0])
    terms: list[Node] = []
    for at, entry in enumerate(rows[0]):
        minor = determinant(Matrix(tuple(row[:at] + row[at + 1 :] for row in rows[1:])))
        term = Op("mul", (as_node(entry), minor))
        terms.append(Op("neg", (term,)) if at % 2 else term)
    return reduce(lambda a, b: Op("add", (a, b)), terms)


def _size(matrix: Matrix) -> tuple[int, int]:
    return len(matrix.rows), len(matrix.rows[0])


def _entry(head: str, left: Value, right: Value) -> Node:
    return Op(head, (as_node(left), as_node(right)))


def _product(left: Matrix, right: Matrix) -> Matrix:
    if len(left.rows[0]) != len(right.rows) or max(*_size(left), *_size(right)) > MAX_SIZE:
        raise Unreadable("matrices that do not fit")
    columns = list(zip(*right.rows, strict=True))
    return Matrix(tuple(tuple(_dot(row, column) for column in columns) for row in left.rows))


def _dot(row: tuple[Value, ...], column: tuple[Value, ...]) -> Node:
    terms = [_entry("mul", a, b) for a, b in zip(row, column, strict=True)]
    return reduce(lambda a, b: Op("add", (a, b)), terms)


__all__ = ["determinant", "negative", "operation"]
