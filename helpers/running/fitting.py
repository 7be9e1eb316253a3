"""How large a budget can be here: what was asked for, lowered to what there is."""

from dataclasses import dataclass

from helpers.memory import budgeted_bytes
from helpers.system.ram import Limit, limits, physical_ram_bytes
from helpers.units import format_bytes

RESERVED_SHARE = 0.05  # of a container's limit, for the caller, which is in it too


@dataclass(frozen=True)
class Budget:
    """What the child may have, and what was asked for if that is more than there is."""

    size_bytes: int
    asked_bytes: int | None = None
    limit: str = ""  # "the 1.2 GiB limit of this container": where there is less


def lowest_limit() -> tuple[Limit | None, str]:
    """Return the limit above every experiment with the least room, and its name."""
    found = [limit for limit in limits() if limit.size_bytes < physical_ram_bytes()]
    if not found:
        return None, f"the {format_bytes(physical_ram_bytes())} of RAM of this machine"
    lowest = min(found, key=lambda limit: limit.room_bytes)
    return lowest, f"the {format_bytes(lowest.size_bytes)} limit of this container"


def fit(pid: int, asked_bytes: int) -> Budget:
    """Return the budget, lowered to what there is; refuse one that is used up before the start."""
    needed = budgeted_bytes(pid)
    budget, (lowest, name) = Budget(asked_bytes), lowest_limit()
    if lowest is not None:
        room = lowest.room_bytes + needed - int(RESERVED_SHARE * lowest.size_bytes)
        if room < asked_bytes:
            budget = Budget(room, asked_bytes, name)
    if budget.size_bytes < needed * 1.1:
        below = f", all that is free below {name}," if budget.limit else ""
        raise ValueError(
            f"ram_budget {format_bytes(budget.size_bytes)}{below} is too small: Python and torch "
            f"alone take {format_bytes(needed)} here. Pass at least {format_bytes(2 * needed)}"
        )
    return budget
