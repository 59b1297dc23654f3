"""Record the frozen values again: ``python -m tests.frozen.record [part ...]``."""

from __future__ import annotations

import sys

from tests.frozen.adapters import PARTS, compute
from tests.frozen.data import jittered
from tests.frozen.values import TOLERANCES, differences, read, write

# Relative: a million times the rounding of other processors, and far below all tolerances. A value
# that moves with it hangs on a tie or on a rule that stops early, and is of no use as a record.
JITTER = 1e-10


def main(parts: list[str]) -> None:
    """Write each part; print what changed, for `CHANGES.md`, and what cannot be relied on."""
    for part in parts or list(PARTS):
        try:
            old = read(part)
        except FileNotFoundError:
            old = {}
        new = {}
        for name in PARTS[part]:
            try:
                new[name] = compute(part, name)
            except ImportError as error:
                print(f"{part}/{name}: kept as it was, {error}")  # noqa: T201
                new[name] = old[name]
                continue
            with jittered(JITTER):
                again = compute(part, name)
            rtol = TOLERANCES[PARTS[part][name].tolerance]
            for line in differences(new[name], again, rtol, f"{part}/{name}")[:3]:
                print(f"hangs on rounding: {line}")  # noqa: T201
        for line in differences(old, new, 0.0, part):
            print(line)  # noqa: T201
        write(part, new)


if __name__ == "__main__":
    main(sys.argv[1:])
