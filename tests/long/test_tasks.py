"""The commands of the README's tasks, on small files."""

from __future__ import annotations

import pytest
from benchmarks.tasks import TASKS, block_of, page, run

from tests.page_blocks import commands

# the first and the last are run by test_pages.py, as they stand in the README
QUICK = TASKS[1:4]


@pytest.mark.parametrize("task", QUICK, ids=lambda task: task.title)
def test_commands_of_the_readme_run(task, tmp_path):
    data, times = run(task, tmp_path, small=True)
    assert data
    assert [timing.command for timing in times] == [text for text, _ in commands(block_of(task))]
    assert all(timing.wall > 0 for timing in times)
    assert task.title in page([(task, data, times)])
