"""Would the tests notice? Random small changes of the code, one at a time, and the tests of each.

    pip install cosmic-ray
    python tests/fuzz/mutants.py FOLDER [--mutants N] [--seed N] [--jobs N]

A mutant is one change by an operator of cosmic-ray (another comparison, a number one larger, `and`
for `or`, a loop without iterations) at a place drawn at random, in the modules that compute or keep
data. The quick tests of its package are run until one fails, those that import the module first. In
FOLDER each job has a clone of the last commit, and machine code for it, of which a mutant compiles
only what may contain the changed module. A run that was interrupted continues. Prints the mutants
that no test noticed, as differences.

Not drawn: annotations, decorators, `strict=True` of zip, which asserts, and `is` for `==`, which is
the same for most values.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

import grimp
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
TESTS = {
    "moses_feature/phrases": ["phrases"],
    "moses_feature/decoder": ["decoder"],
    "moses_feature/metrics": ["metrics", "mert"],
    "moses_feature/tables": ["tables", "report"],
    "moses_feature/building": ["building"],
    "mert/optimisers": ["mert"],
    "mert/comparison": ["mert"],
}
"""The packages whose modules are changed, and the folders with their tests."""
SAME = (
    *("_Is_Eq", "_Eq_Is", "_IsNot_NotEq", "_NotEq_IsNot", "RemoveDecorator"),
    *("VariableReplacer", "VariableInserter"),  # of variables that are named
)
MINUTES = 8


@dataclass(frozen=True)
class Mutant:
    """A change: of which file, by which operator, at its which place."""

    path: str
    operator: str
    occurrence: int

    def text(self, root: Path) -> str:
        """Return the changed file."""
        operator = get_operator(self.operator)()
        return mutate_code((root / self.path).read_text(), operator, self.occurrence)

    def difference(self, root: Path) -> str:
        """Return the changed lines, as a unified difference without context."""
        old, new = (root / self.path).read_text().splitlines(), self.text(root).splitlines()
        return "\n".join(difflib.unified_diff(old, new, self.path, self.operator, n=0, lineterm=""))


def mutants(path: str) -> list[list[Mutant]]:
    """Return the mutants of a file, in a list for each place."""
    text = (ROOT / path).read_text()
    tree = get_ast(text)
    skipped = list(_unread(ast.parse(text)))
    places: dict[object, list[Mutant]] = {}
    for name in operator_names():
        if name.endswith(SAME):
            continue
        operator = get_operator(name)()
        positions = (p for node in ast_nodes(tree) for p in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            if not any(first <= start and end <= last for first, last in skipped):
                places.setdefault((start, end), []).append(Mutant(path, name, occurrence))
    return list(places.values())


def _unread(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where no change is drawn, as ((line, column), (line, column))."""
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.keyword) and node.arg == "strict":
            parts.append(node.value)
        for part in [*parts, *getattr(node, "decorator_list", [])]:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def drawn(number: int, seed: int) -> list[Mutant]:
    """Draw places, all as likely, and one mutant for each place."""
    files = (
        str(path.relative_to(ROOT)) for package in TESTS for path in (ROOT / package).rglob("*.py")
    )
    places = [place for path in sorted(files) for place in mutants(path)]
    generator = random.Random(seed)
    return [generator.choice(place) for place in generator.sample(places, number)]


class Clone:
    """A clone of the last commit, in which one mutant after another is tested.

    Args:
        folder: where it is made.

    Attributes:
        root: the checkout.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder.absolute() / "clone"
        self._folder = folder.absolute()
        if not self.root.exists():
            subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root)], check=True)
        subprocess.run(["git", "checkout", "-q", "."], cwd=self.root, check=True)
        commits = {_commit(self.root), _commit(ROOT)}
        if len(commits) > 1:
            raise SystemExit(f"{folder} is of another commit: {' and '.join(commits)}")
        self._graph = grimp.build_graph("moses_feature", "mert")
        self._compiled = self._machine_code("compiled")

    def prepare(self) -> None:
        """Compile, and see that all tests pass without a mutant.

        Raises:
            SystemExit: one fails.
        """
        done = self._folder / "prepared"
        if done.exists():
            return
        failed = self._failed("compiled", sorted({f"tests/{n}" for f in TESTS.values() for n in f}))
        if failed:
            raise SystemExit(f"without a mutant: {failed}")
        done.touch()

    def test(self, mutant: Mutant) -> str:
        """Return what noticed a mutant: a test, an error, or the time. Empty: nothing."""
        path = self.root / mutant.path
        text = path.read_text()
        path.write_text(mutant.text(self.root))
        try:
            self._reuse(self._machine_code("mutant"), mutant.path)
            return self._failed("mutant", self._tests(mutant.path))
        finally:
            path.write_text(text)
            shutil.rmtree(self._folder / "mutant", ignore_errors=True)

    def _tests(self, path: str) -> list[str]:
        """Return the files with tests for a module, those that import it first."""
        module = _module(path)
        package = next(package for package in TESTS if path.startswith(package))
        folders = [self.root / "tests" / name for name in TESTS[package]]
        files = sorted(
            (f"from {module} import" not in file.read_text(), str(file.relative_to(self.root)))
            for folder in folders
            for file in folder.rglob("test_*.py")
        )
        return [file for _, file in files]

    def _reuse(self, kept: Path, path: str) -> None:
        """Take over the machine code in which a changed file cannot be."""
        changed = {_module(path), *self._graph.find_downstream_modules(_module(path))}
        names = {tuple(module.split(".")[-2:]) for module in changed}
        for file in self._compiled.rglob("*.nb*"):
            folder = file.parent.name.rpartition("_")[0]
            if (folder, file.name.split(".")[0]) not in names:
                target = kept / file.relative_to(self._compiled)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(file, target)

    def _machine_code(self, name: str) -> Path:
        """Return the folder for machine code of the clone as it is."""
        code = "from moses_feature.runtime.compiled import KEPT; print(KEPT)"
        environment = self._environment(name)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.root,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        return Path(done.stdout.strip() or self._folder / name)

    def _failed(self, name: str, files: list[str]) -> str:
        """Run tests until one fails. Return it, an error, or the time; empty if all pass."""
        command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [*command, "-m", "not slow", *files],
            cwd=self.root,
            env=self._environment(name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=60 * MINUTES)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"more than {MINUTES} minutes"
        if process.returncode == 0:
            return ""
        lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return lines[0] if lines else f"exit code {process.returncode}: {output[-300:]}"

    def _environment(self, name: str) -> dict[str, str]:
        kept = {"NUMBA_CACHE_DIR": str(self._folder / name), "PYTHONPATH": str(self.root)}
        return {**os.environ, **kept}


def _commit(root: Path) -> str:
    """Return the commit of a checkout, marked if its files are not those of it."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=root, check=True, stdout=-1, text=True).stdout.strip()


def _module(path: str) -> str:
    """Return the name of the module in a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main() -> None:
    """Test mutants, and print what no test noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    results = arguments.folder / "results.jsonl"
    noticed: dict[Mutant, str] = {}
    if results.exists():
        for line in results.read_text().splitlines():
            record = json.loads(line)
            noticed[Mutant(**record["mutant"])] = record["noticed"]
    everything = drawn(arguments.mutants, arguments.seed)
    clones: Queue[Clone] = Queue()
    with ThreadPoolExecutor(arguments.jobs) as pool, results.open("a") as file:
        made = [Clone(arguments.folder / f"job-{job}") for job in range(arguments.jobs)]
        list(pool.map(Clone.prepare, made))
        for clone in made:
            clones.put(clone)

        def test(mutant: Mutant) -> None:
            clone = clones.get()
            try:
                noticed[mutant] = clone.test(mutant)
            finally:
                clones.put(clone)
            file.write(json.dumps({"mutant": asdict(mutant), "noticed": noticed[mutant]}) + "\n")
            file.flush()
            print(f"{len(noticed)}: {noticed[mutant] or 'NOT NOTICED ' + str(mutant)}", flush=True)

        list(pool.map(test, [mutant for mutant in everything if mutant not in noticed]))
    survivors = [mutant for mutant in everything if not noticed[mutant]]
    for mutant in survivors:
        print(f"\n{mutant.difference(made[0].root)}")
    print(f"\n{len(everything) - len(survivors)} of {len(everything)} mutants were noticed")


if __name__ == "__main__":
    main()
