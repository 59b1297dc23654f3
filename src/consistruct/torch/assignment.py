"""Linear assignment of a whole batch at once, by shortest augmenting paths.

The method of Jonker and Volgenant as SciPy has it, with a fixed number of steps in place of "until
a free column is reached", so that nothing waits for the device: O(n²) steps of O(B·n) each.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["best_partners"]


def best_partners(scores: Tensor) -> Tensor:
    """The permutation p of each (n, n) matrix that maximizes Σ_i scores[i, p(i)], (B, n)."""
    rows, n, _ = scores.shape
    cost = -scores
    device, dtype = scores.device, scores.dtype
    batch = torch.arange(rows, device=device)
    price_row = torch.zeros((rows, n), dtype=dtype, device=device)
    price_column = torch.zeros((rows, n), dtype=dtype, device=device)
    partner = torch.full((rows, n), -1, device=device)  # of each row
    owner = torch.full((rows, n), -1, device=device)  # of each column
    for start in range(n):
        shortest = torch.full((rows, n), torch.inf, dtype=dtype, device=device)
        path = torch.full((rows, n), -1, device=device)
        seen_row = torch.zeros((rows, n), dtype=torch.bool, device=device)
        seen_column = torch.zeros((rows, n), dtype=torch.bool, device=device)
        row = torch.full((rows,), start, device=device)
        least = torch.zeros(rows, dtype=dtype, device=device)
        sink = torch.full((rows,), -1, device=device)
        for _ in range(start + 1):  # a path meets at most that many rows
            going = sink < 0
            seen_row = seen_row | (going[:, None] & _at(row, n))
            through = least[:, None] + cost[batch, row] - price_row[batch, row, None] - price_column
            better = going[:, None] & ~seen_column & (through < shortest)
            shortest = torch.where(better, through, shortest)
            path = torch.where(better, row[:, None], path)
            open_ends = torch.where(seen_column, torch.inf, shortest)
            # of equally short columns a free one ends the search
            lowest = open_ends.min(1, keepdim=True).values
            tied = (open_ends == lowest) & ~seen_column
            rank = tied.to(torch.int64) * (1 + (owner < 0).to(torch.int64))
            column = rank.argmax(1)
            least = torch.where(going, lowest[:, 0], least)
            seen_column = seen_column | (going[:, None] & _at(column, n))
            found = owner[batch, column]
            sink = torch.where(going & (found < 0), column, sink)
            row = torch.where(going & (found >= 0), found, row)
        # prices along the tree
        own = shortest.gather(1, partner.clamp(min=0))
        first = _at(torch.full((rows,), start, device=device), n)
        raised = torch.where(first, least[:, None], least[:, None] - own)
        price_row = price_row + torch.where(seen_row, raised, 0.0)
        price_column = price_column - torch.where(
            seen_column, least[:, None] - torch.where(seen_column, shortest, 0.0), 0.0
        )
        # turn the path round, from its end to its start
        column = sink
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        for _ in range(start + 1):
            back = path[batch, column]
            here = ~done[:, None]
            owner = torch.where(here & _at(column, n), back[:, None], owner)
            following = partner[batch, back]
            partner = torch.where(here & _at(back, n), column[:, None], partner)
            done = done | (back == start)
            column = torch.where(done, column, following.clamp(min=0))
    return partner


def _at(position: Tensor, n: int) -> Tensor:
    return torch.arange(n, device=position.device) == position[:, None]
