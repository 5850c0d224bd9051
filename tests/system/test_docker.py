"""The container's recipe and scripts, as far as they can be tried without a container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from helpers.files import ROOT
from helpers.moses import N_BEST, SENTENCES

DOCKER = ROOT / "docker"
TOOLS = Path(sys.executable).parent
KNOWN = ["/opt/moses", "/opt/bin/moses", "/mosesdecoder", "/home/moses/mosesdecoder"]


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def shell(script: str, *arguments: object, **environment: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["sh", DOCKER / script, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], **{k: str(v) for k, v in environment.items()}},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def container(tmp_path) -> dict[str, object]:
    """Return an environment whose commands only print what they are called with."""
    for name in ("augment-phrase-table", "mert-tune", "mert-compare", "moses-feature"):
        executable(tmp_path / "bin" / name, f'printf "[%s]" {name} "$@"')
    cache = tmp_path / "cache"
    cache.mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "MOSES_HOME": tmp_path / "moses",
        "NUMBA_CACHE_DIR": cache,
        "THREADS": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "expected", "with_moses"),
    [
        (["augment", "a b.gz", "-"], "augment-phrase-table|--threads|3|a b.gz|-", None),
        (
            ["tune", "x.ini"],
            "mert-tune|--jobs|3|x.ini",
            "mert-tune|--decoder|moses|--jobs|3|x.ini",
        ),
        (
            ["compare", "a=x", "--seeds", "1"],
            "mert-compare|--jobs|3|a=x|--seeds|1",
            "mert-compare|--decoder|moses|--jobs|3|a=x|--seeds|1",
        ),
        (
            ["serve", "tuned", "--token", "t"],
            "moses-feature|serve|--host|0.0.0.0|--jobs|3|tuned|--token|t",
            None,
        ),
        (["moses-feature", "check", "t"], "moses-feature|check|t", None),
    ],
)
def test_entrypoint(container, tmp_path, arguments, expected, with_moses):
    def words() -> str:
        result = shell("entrypoint.sh", *arguments, **container)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip("[]").replace("][", "|")

    assert words() == expected
    executable(tmp_path / "moses" / "bin" / "moses", "exit 0")
    assert words() == (with_moses or expected)


def test_entrypoint_without_command_threads_or_a_place_to_write(container, tmp_path):
    assert "augment, tune, compare or serve" in shell("entrypoint.sh", **container).stdout
    assert "augment, tune, compare or serve" in shell("entrypoint.sh", "help", **container).stdout
    assert "Moses: none" in shell("entrypoint.sh", "help", **container).stdout
    assert "augment, tune, compare or serve" in shell("entrypoint.sh", "--help", **container).stdout
    for wrong in ("halp", "-v"):
        result = shell("entrypoint.sh", wrong, **container)
        assert result.returncode == 127
        assert f"no command {wrong}" in result.stderr
    del container["THREADS"]
    executable(tmp_path / "bin" / "mert-tune", 'echo "$@" "$NUMBA_CACHE_DIR"')
    container["NUMBA_CACHE_DIR"] = "/no/such/place"
    cores, cache = shell("entrypoint.sh", "tune", **container).stdout.split()[1:]
    assert int(cores) == len(os.sched_getaffinity(0))
    assert Path(cache).is_dir()
    Path(cache).rmdir()


@pytest.mark.slow
def test_entrypoint_tunes_with_the_moses_of_the_image(container, toy, embedded, stand_in, tmp_path):
    """The real mert-tune, and a Moses that replays n-best lists."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "bin").symlink_to(stand_in.parent)
    best = [embedded.translate(number)[0].words for number in range(len(SENTENCES))]
    (tmp_path / "dev.in").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    (tmp_path / "dev.ref").write_bytes(b"".join(b" ".join(words) + b"\n" for words in best))
    container.update(PATH=f"{TOOLS}:{os.environ['PATH']}", MOSES_HOME=tmp_path / "home")
    result = shell(
        "entrypoint.sh",
        "tune",
        toy.ini.path,
        "--dev",
        tmp_path / "dev.in",
        "--dev-reference",
        tmp_path / "dev.ref",
        "--work-dir",
        tmp_path / "tuned",
        "--nbest-size",
        N_BEST,
        **container,
    )
    assert result.returncode == 0, result.stderr
    assert "--decoder moses --jobs 3" in (tmp_path / "tuned" / "moses.ini").read_text()
    assert (tmp_path / "tuned" / "run1.moses.log").exists()


def test_health(container, tmp_path):
    assert shell("health.sh", **container).returncode == 0
    executable(tmp_path / "moses" / "bin" / "moses", '[ "$1" = -version ]')
    assert shell("health.sh", **container).returncode == 0
    executable(tmp_path / "moses" / "bin" / "moses", "exit 127")
    assert shell("health.sh", **container).returncode != 0
    (tmp_path / "moses" / "bin" / "moses").unlink()
    executable(tmp_path / "bin" / "mert-tune", "exit 1")
    assert shell("health.sh", **container).returncode != 0


@pytest.fixture
def image(tmp_path):
    """Return a function that makes the file system of an image, with a stand-in for Moses.

    Moses needs liba, which needs libb; the stand-in for ldd finds what is in LD_LIBRARY_PATH.
    """
    needs = {"moses": "liba.so", "liba.so": "libb.so"}
    cases = "\n".join(f"*/{name}) needed={library} ;;" for name, library in needs.items())
    executable(
        tmp_path / "bin" / "ldd",
        f'for file in "$@"; do needed=\ncase $file in\n{cases}\nesac\n'
        '[ -z "$needed" ] || if [ -e "$LD_LIBRARY_PATH/$needed" ]\n'
        'then echo "$needed => $LD_LIBRARY_PATH/$needed"; else echo "$needed => not found"; fi\n'
        "done",
    )

    def make(home: str, libraries: dict[str, str]) -> Path:
        root = tmp_path / "root"
        executable(
            root / home.lstrip("/") / "bin" / "moses",
            '[ -e "$LD_LIBRARY_PATH/liba.so" ] && [ -e "$LD_LIBRARY_PATH/libb.so" ] && echo 1',
        )
        executable(root / home.lstrip("/") / "scripts" / "training" / "mert-moses.pl", "")
        for name, folder in libraries.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / name).write_text(name)
        return root

    return make


LIBRARIES = {"liba.so": "opt/lib", "libb.so": "usr/lib/x86_64-linux-gnu"}


@pytest.mark.parametrize("home", KNOWN)
def test_moses_is_found_in_each_known_image(image, tmp_path, home):
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    result = shell("collect-moses.sh", image(home, LIBRARIES), tmp_path / "out", PATH=path)
    assert result.returncode == 0, result.stderr
    found = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert found == ["lib/liba.so", "lib/libb.so", "scripts/training/mert-moses.pl"]
    assert (tmp_path / "out" / "bin" / "moses").is_file()


def test_moses_elsewhere_nowhere_or_without_a_library(image, tmp_path):
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"

    def collect(root: Path, *directory: str) -> subprocess.CompletedProcess:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return shell("collect-moses.sh", root, tmp_path / "out", *directory, PATH=path)

    (tmp_path / "scratch").mkdir()
    result = collect(tmp_path / "scratch")
    assert result.returncode == 0
    assert "without Moses" in result.stderr
    assert list((tmp_path / "out").rglob("*")) == [tmp_path / "out" / "lib"]

    assert "expected a directory" in collect(tmp_path / "none").stderr
    root = image("/srv/my smt", LIBRARIES)
    assert collect(root, "/srv/my smt").returncode == 0
    shutil.rmtree(root)
    root = image("/srv/smt", LIBRARIES)
    result = collect(root)
    assert result.returncode == 1
    assert "MOSES_DIR" in result.stderr
    assert collect(root, "/srv/smt").returncode == 0

    (root / "opt/lib/liba.so").unlink()
    result = collect(root, "/srv/smt")
    assert result.returncode == 1
    assert "does not run here; libraries that are missing: liba.so" in result.stderr


def tool(name: str) -> str:
    path = shutil.which(name, path=f"{TOOLS}:{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"needs {name}")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["hadolint", "docker/Dockerfile"],
        ["shellcheck", *(f"docker/{path.name}" for path in DOCKER.glob("*.sh"))],
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker/compose.yaml"],
    ],
    ids=lambda command: command[0],
)
def test_lint(command):
    result = subprocess.run(
        [tool(command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_services():
    """Data at the same path inside and out, the user's own ids, no network."""
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    assert set(services) == {"augment", "tune", "compare", "serve", "augment-gpu"}
    for name, service in services.items():
        (volume,) = service["volumes"]
        assert volume["source"] == volume["target"] == "${DATA}"
        assert service["working_dir"].startswith("${DATA:?")
        assert service["user"].startswith("${USER_AND_GROUP")
        assert service["network_mode"] == ("bridge" if name == "serve" else "none")
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        assert service["environment"] == {"THREADS": "${THREADS:-}"}
        assert service["entrypoint"][:2] == ["entrypoint.sh", name.removesuffix("-gpu")]
    assert services["augment-gpu"]["profiles"] == ["gpu"]


def test_bases_are_pinned_and_what_is_copied_is_in_the_context():
    text = (DOCKER / "Dockerfile").read_text()
    bases = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", text, re.MULTILINE))
    assert set(re.findall(r"^FROM \$\{(\w+)\}", text, re.MULTILINE)) == set(bases)
    assert all(re.search(r":[0-9]+\.[0-9]+", base) for base in bases.values())
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    context = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for word in line.split()[:-1]
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert name in context or name.partition("/")[0] in context
