from __future__ import annotations

from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Union

Dollars = Union[int, float, str, Decimal]

# It refuses to round.
_EXACT = Context(prec=40, traps=[Inexact, InvalidOperation])
_MOST = 2**53 - 1


def microdollars(dollars: Dollars) -> int:
    """The whole microdollars of an amount. A float counts as the number that Python prints for it.

    >>> microdollars(0.05)
    50000
    >>> microdollars("1.10")
    1100000

    It raises ValueError where it would have to round:

    >>> microdollars(0.1 + 0.2)
    Traceback (most recent call last):
    ...
    ValueError: expected dollars of 0 or more with at most six decimals, not 0.30000000000000004. Round it, as in round(amount, 6).
    """
    try:
        amount = _EXACT.multiply(_EXACT.create_decimal(str(dollars)), Decimal(1_000_000))
        if 0 <= amount <= _MOST:
            return int(_EXACT.to_integral_exact(amount))
    except DecimalException:
        pass
    advice = " Round it, as in round(amount, 6)." if isinstance(dollars, float) and dollars > 0 else ""
    raise ValueError(f"expected dollars of 0 or more with at most six decimals, not {dollars!r}.{advice}")
