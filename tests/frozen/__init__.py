"""Values that 0.1 (commit 93275d3) gave, and tests that they are still given.

The files `*.json` hold decoded values under names of this folder's own, one file per part and one
line per case: certificates, calibration functions, what every registered model, loss and metric
decides and expects to lose, learning from batches, risk control, and one report of each kind.
Bytes, key names and file formats are not in the files, so a rebuilt room passes as long as it
computes the same.

* `data.py` makes the inputs, from seeds, and knows nothing of the library;
* `adapters.py` lists the cases and requests certificates and calibration functions,
  `adapters_learning.py` models and losses, `adapters_reports.py` risk control and reports: these
  three are the files to edit after a rename, and nothing else changes with one;
* `values.py` states the tolerances: integers, strings and Booleans must be equal.

Whoever changes a value on purpose records it again and adds a line with the reason to `CHANGES.md`:

    python -m tests.frozen.record                # every part
    python -m tests.frozen.record certificates   # one part

It prints what changed. It also computes every case from inputs that differ in their tenth digit,
and names those that then differ by more than the tolerance ("hangs on rounding"): choose other
data or settings for them. The values of 0.1 itself are recorded from a checkout of its commit:

    PYTHONPATH=CHECKOUT/src:. python -m tests.frozen.record
"""
