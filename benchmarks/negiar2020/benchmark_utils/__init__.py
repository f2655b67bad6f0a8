"""What benchopt's classes and figure1.py share: the three tasks of the paper, and the course of a run."""

from benchmark_utils.runs import METHODS, SEEDS, course, recorded_steps
from benchmark_utils.tasks import TASKS, Task

__all__ = ["METHODS", "SEEDS", "TASKS", "Task", "course", "recorded_steps"]
