"""The five tasks of the README stand on their page; tests/long runs their commands."""

from __future__ import annotations

import re

from benchmarks.tasks import LIMIT, PAGE, TASKS, block_of

from tests.page_blocks import commands


def test_every_task_has_its_block():
    assert len({block_of(task).code for task in TASKS}) == 5


def test_the_page_is_about_these_commands_and_keeps_the_limit():
    text = PAGE.read_text(encoding="utf-8")
    # processor seconds of all commands, in all threads; and what the clock stated
    rows = re.findall(r"^\| (.+?) \| .+ \| \d+ \| (\d+) \| \d+ \| (yes|no) \|$", text, re.M)
    assert all(float(seconds) < LIMIT and word == "yes" for _, seconds, word in rows)
    timed = {name for name, _, _ in rows}
    later = re.findall(r"^Not timed yet.*?: (.+?)\. ", text, re.M)
    assert timed | {name for names in later for name in names.split(", ")} == {
        task.title for task in TASKS
    }
    for task in TASKS:
        if task.title in timed:
            section = text.split(f"### {task.title}\n")[1].split("### ")[0]
            written = re.findall(r"^\| `(.+)` \|", section, re.M)
            assert written == [command for command, _ in commands(block_of(task))], (
                f"run python -m benchmarks.tasks --write again: {task.title}"
            )
