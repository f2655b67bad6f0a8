"""Every public class and function says in one sentence what it is; what can be chosen by name shows an example."""

import inspect
import re

import pytest

import condgrad

FAMILIES = ["losses", "constraints", "solvers"]


def public_objects():
    """Public classes and functions by dotted name: of condgrad and of the modules it exports."""
    found = {}
    pending = [("condgrad", condgrad), *((f"condgrad.{name}", getattr(condgrad, name)) for name in FAMILIES)]
    seen = set()
    while pending:
        prefix, module = pending.pop()
        if prefix in seen:
            continue
        seen.add(prefix)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.ismodule(value):
                pending.append((f"{prefix}.{name}", value))
            elif inspect.isclass(value) or callable(value):
                found[f"{prefix}.{name}"] = value
    return found


PUBLIC = public_objects()
# Losses, sets and solvers proper: not the protocols that they follow, nor the vertices that sets return.
CHOICES = {
    name: value
    for name, value in PUBLIC.items()
    if name.split(".")[1] in FAMILIES
    and inspect.isclass(value)
    and value.__module__.rsplit(".", 1)[-1] not in {"_protocol", "base", "vertices"}
}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_first_line_is_one_sentence(name):
    first = (PUBLIC[name].__doc__ or "").strip().split("\n")[0].strip()
    assert first, f"{name} has no docstring."
    assert first.endswith("."), f"The docstring of {name} must start with one sentence on one line; got {first!r}."
    assert not re.search(r"[.!?]\s+[A-Z]", first), f"The first line of {name} is more than one sentence: {first!r}."


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_has_an_example(name):
    assert ">>>" in (CHOICES[name].__doc__ or ""), f"The docstring of {name} needs a doctest of at most six lines."
