"""Install a wheel into an environment of its own and make first fits: none of them may have to compile a kernel.

    python .ci/try_wheel.py dist/condgrad-....whl

The fits are the ten lines of README.md, the scripts of the estimators, `condgrad fit`, and `lasso_path` on dense and
sparse data, each in a new process with an empty kernel cache. Seconds are shown, compilations are counted.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

from environments import clean_environment, outside_of_the_checkout

ROOT = pathlib.Path(__file__).parents[1]
COUNT = """
import sys, time
from numba.core import event
import condgrad as cg, numpy as np, scipy.sparse, sklearn.datasets, sklearn.preprocessing, sklearn.pipeline
from condgrad import datasets
import condgrad.estimators, condgrad.paths, condgrad.run.minimize, condgrad.cli

class Listener(event.Listener):
    names = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
began = time.perf_counter()
"""
REPORT = """
seconds = time.perf_counter() - began
print(f"@ {seconds:.2f} {len(Listener.names)} {' '.join(Listener.names[:5])}")
"""
PATH = """
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 20))
X[abs(X) < 0.8] = 0.0
cg.lasso_path({kind}(X), X[:, 0] + 0.1 * rng.standard_normal(60))
"""
SAMPLES = """
rng = np.random.default_rng(0)
X = np.asarray(rng.standard_normal(({n}, 40)), order="{order}")
y = X[:, :9].sum(axis=1) + rng.standard_normal({n}) > 0.0
cg.ConstrainedLogisticRegression().fit(X, y)
"""
FIT = """
lines = [f"{2 * (k % 2) - 1} 1:{k % 7 / 7} 2:{k % 3 / 3} 4:{k % 5 / 5}" for k in range(50)]
open("train.svm", "w").write(chr(10).join(lines))
cg.cli.main(["fit", "train.svm", "--loss", "logistic", "--set", "l1", "--radius", "2", "--quiet"])
"""


def cases() -> dict[str, str]:
    """Return the code of the first fits by name."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = {"ten lines": re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]}
    text = (ROOT / "docs" / "estimator_scripts.md").read_text(encoding="utf-8")
    for block in re.findall(r"```pycon\n(.*?)```", text, re.DOTALL):
        code = "".join(line[4:] + "\n" for line in block.splitlines() if line.startswith((">>> ", "... ")))
        names = re.findall(r"cg\.(\w+)\(", code)
        found[names[0] if names else f"example {len(found)}"] = code
    for kind in ("np.asarray", "np.asfortranarray", "scipy.sparse.csr_array", "scipy.sparse.csc_array"):
        found[f"lasso_path {kind}"] = PATH.replace("{kind}", kind)
    for n, order in ((300, "C"), (4_000, "C"), (4_000, "F"), (30_000, "C"), (30_000, "F")):
        found[f"logistic regression, {n:,} samples, {order}"] = SAMPLES.replace("{n}", str(n)).replace("{order}", order)
    return found | {"condgrad fit": FIT}


def main(wheel: str) -> int:
    """Try the wheel; return 1 where a fit had to compile."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        python = clean_environment(folder / "venv", wheel, "pandas")
        failed = 0
        for k, (case, code) in enumerate(cases().items()):
            work = folder / str(k)
            work.mkdir()
            environment = outside_of_the_checkout(NUMBA_CACHE_DIR=str(work / "cache"))
            done = subprocess.run(
                [python, "-c", COUNT + code + REPORT],
                cwd=work, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                print(f"{case}: {done.stderr}")
                failed += 1
                continue
            seconds, count, *names = done.stdout.rpartition("@ ")[2].split()
            print(f"{case:<45} {seconds:>6} s  {count} compiled  {' '.join(names)}", flush=True)
            failed += count != "0"
    if failed:
        print(f"{failed} first fits had to compile, or failed.", file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
