"""``--max-cost``: money is reserved before a call and settled after it.

A reservation is the most that the call can cost, so the sum of spent and reserved money never passes
the limit. Each reservation is on record before the call goes out, so that not even a kill -9 in the
middle makes a resumed run overshoot.
"""

from __future__ import annotations

from decimal import Decimal

import anyio

from clash.errors import ClashError


class BudgetSpent(ClashError):
    """The rest of the budget does not pay for another call. The run ends, and can be resumed."""

    exit_code = 3


class Budget:
    """Money spent and reserved, and the limit, in US dollars; null is no limit.

    Attributes:
        spent_usd: settled cost, an upper bound where the provider told none.
        reserved_usd: the sum of the reservations of calls in flight.
        exact: whether every settled cost was known.
    """

    def __init__(self, limit: Decimal | None = None) -> None:
        self.limit = limit
        self.spent_usd = Decimal(0)
        self.reserved_usd = Decimal(0)
        self.exact = True
        self._settlement: anyio.Event | None = None

    async def reserve(self, worst_case: Decimal) -> Decimal:
        """Reserve ``worst_case``, waiting for calls in flight where they may leave enough.

        Returns:
            The amount, for :meth:`settle`.

        Raises:
            BudgetSpent: it does not fit and nothing is in flight, or it would not fit even if all
                calls in flight cost nothing.
        """
        while not self._fits(worst_case):
            if self.reserved_usd == 0 or self.spent_usd + worst_case > (self.limit or 0):
                raise BudgetSpent(
                    f"the budget of ${self.limit} does not pay for another call"
                    f" (spent ${self.spent_usd:.4f}, the next may cost ${worst_case:.4f})"
                )
            self._settlement = self._settlement or anyio.Event()
            await self._settlement.wait()
        self.reserved_usd += worst_case
        return worst_case

    def settle(self, reservation: Decimal, cost: Decimal | None) -> None:
        """Release a reservation and book the cost; an unknown cost is booked as reserved."""
        self.reserved_usd -= reservation
        self.spent_usd += reservation if cost is None else cost
        self.exact = self.exact and cost is not None
        if self._settlement is not None:
            self._settlement.set()
            self._settlement = None

    def hold(self, amount: Decimal) -> None:
        """Reserve again what an earlier process reserved for an answer that may still arrive."""
        self.reserved_usd += amount

    def book(self, cost: Decimal, *, exact: bool) -> None:
        """Count what an earlier process of the same run spent."""
        self.spent_usd += cost
        self.exact = self.exact and exact

    @property
    def over(self) -> Decimal:
        """The amount by which the limit was passed; 0 without a limit or within it."""
        return Decimal(0) if self.limit is None else max(Decimal(0), self.spent_usd - self.limit)

    def _fits(self, amount: Decimal) -> bool:
        return self.limit is None or self.spent_usd + self.reserved_usd + amount <= self.limit
