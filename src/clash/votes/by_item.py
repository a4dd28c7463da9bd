"""Something of every item, held in little memory: computed when asked for, or shared by many."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from clash.store.journal import encode
from clash.store.stored import with_item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from clash.records import Verdict

V = TypeVar("V")


class ComputedByItem(Mapping[str, V], Generic[V]):
    """A value of each item, computed each time that it is asked for."""

    def __init__(self, ids: Mapping[str, int], compute: Callable[[str], V]) -> None:
        """Args: the items, as keys, and what computes the value of one."""
        self._ids, self._compute = ids, compute

    def __getitem__(self, item_id: str) -> V:
        if item_id not in self._ids:
            raise KeyError(item_id)
        return self._compute(item_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._ids


class SharedByItem(Mapping[str, V], Generic[V]):
    """A value of some items, of which there are few different ones."""

    def __init__(self, rows: Mapping[str, int], codes: Sequence[int], values: Sequence[V]) -> None:
        """Args: the row of each item; by row the number of its value, -1 for none; the values."""
        self._rows, self._codes, self._values = rows, codes, values
        self._size = sum(code >= 0 for code in codes)

    def __getitem__(self, item_id: str) -> V:
        code = self._codes[self._rows[item_id]]
        if code < 0:
            raise KeyError(item_id)
        return self._values[code]

    def __iter__(self) -> Iterator[str]:
        return (item_id for item_id, row in self._rows.items() if self._codes[row] >= 0)

    def __len__(self) -> int:
        return self._size


class SharedVerdicts(Sequence["Verdict"]):
    """Verdicts, held once where many items have the same one."""

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        """Args: the verdicts, whose order is kept."""
        self._ids: list[str] = []
        self._codes = array("i")
        self._kinds: list[Verdict] = []
        codes: dict[bytes, int] = {}
        for verdict in verdicts:
            bare = with_item(verdict, "")
            code = codes.setdefault(encode(bare), len(self._kinds))
            if code == len(self._kinds):
                self._kinds.append(bare)
            self._ids.append(verdict.item_id)
            self._codes.append(code)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Verdict]:
        for item_id, code in zip(self._ids, self._codes, strict=True):
            yield with_item(self._kinds[code], item_id)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> list[Verdict]: ...
    def __getitem__(self, index: int | slice) -> Verdict | list[Verdict]:
        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        return with_item(self._kinds[self._codes[index]], self._ids[index])
