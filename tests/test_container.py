"""What the container files say, without an engine; tests/container/run builds and runs them."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "Dockerfile").exists(), reason="an image holds no Dockerfile of its own"
)
FILES = [
    "Dockerfile", "codeobjects.Dockerfile", "docker-compose.yml", ".env.example", ".dockerignore",
    "scripts/container-entrypoint",
]  # fmt: skip


def read(name):
    return (ROOT / name).read_text()


def instructions(name="Dockerfile"):
    """A Dockerfile as [(instruction, rest)], continued lines joined."""
    text = re.sub(r"^#.*\n", "", read(name), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line]


def services():
    return yaml.safe_load(read("docker-compose.yml"))["services"]


def argument(name):
    """The default of a build argument."""
    found = [rest for word, rest in instructions() if word == "ARG" and rest.startswith(f"{name}=")]
    return found[0].partition("=")[2].strip('"')


def test_a_bare_up_starts_the_rocm_service_alone():
    assert {name: service.get("profiles", []) for name, service in services().items()} == {
        "reproduce": [],
        "cuda": ["cuda"],
        "cpu": ["cpu"],
        "codeobjects": ["codeobjects"],
    }
    assert services()["reproduce"]["devices"] == ["/dev/kfd", "/dev/dri"]


def test_the_caller_owns_the_results():
    for service in services().values():
        assert service["user"] == "${UID:-1000}:${GID:-1000}"
        assert service["volumes"] == ["./results:/app/results"]


def test_compose_and_dockerfile_have_the_same_defaults():
    arguments = services()["reproduce"]["build"]["args"]
    assert f":-{argument('BASE_IMAGE')}}}" in arguments["BASE_IMAGE"]
    assert f":-{argument('ROCM_ARCH')}}}" in arguments["ROCM_ARCH"]
    declared = {rest.partition("=")[0] for word, rest in instructions() if word == "ARG"}
    for service in services().values():
        assert set(service["build"].get("args", {})) <= declared


def test_every_variable_of_compose_is_explained():
    text = read(".env.example")
    for name in ("UID", "GID", "RENDER_GID", "COMMIT", "CONFIG", "PYTORCH_ROCM_ARCH"):
        assert re.search(rf"^#?{name}=", text, re.MULTILINE), name


def test_the_base_is_pinned_and_the_version_is_the_package_s():
    assert re.search(r":rocm[\w.]+@sha256:[0-9a-f]{64}$", argument("BASE_IMAGE"))
    assert argument("VERSION") == tomllib.loads(read("pyproject.toml"))["project"]["version"]


def test_a_layer_for_each_reason_to_build_anew():
    lines = [f"{word} {rest}" for word, rest in instructions()]
    order = [
        "RUN apt-get", "COPY requirements.txt", "--require-hashes", "requirements-torch.txt",
        "COPY src/online_softmax/csrc", "build_ext", "COPY Snakefile", "LABEL", "USER 1000",
    ]  # fmt: skip
    found = [max(number for number, line in enumerate(lines) if part in line) for part in order]
    assert found[1] <= found[2] and sorted(found) == found
    # Copied twice, the sources would be newer than what was built from them.
    assert [line for line in lines if line.startswith("COPY") and "csrc" in line] == [
        "COPY src/online_softmax/csrc src/online_softmax/csrc"
    ]


@pytest.mark.parametrize("name", ["Dockerfile", "codeobjects.Dockerfile"])
def test_everything_that_is_copied_exists_and_is_sent(name):
    sent = [line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")]
    for word, rest in instructions(name):
        for source in shlex.split(rest)[:-1] if word == "COPY" else []:
            assert list(ROOT.glob(source)), source
            assert any(source == path or source.startswith(f"{path}/") for path in sent), source
    assert not {"results", ".git", ".venv"} & set(sent)


@pytest.mark.parametrize("name", FILES)
def test_no_path_of_a_host(name):
    assert not re.search(r"/(home/(?!online-softmax)|Users/|root/|mnt/|tmp/)", read(name))


def test_the_compiler_s_image_has_the_packages_of_its_rootfs():
    packages = re.search(r"^packages=\((.*)\)", read("scripts/rocm7-rootfs"), re.MULTILINE)[1]
    [install] = [rest for word, rest in instructions("codeobjects.Dockerfile") if "apt-get" in rest]
    assert set(packages.split()) < set(install.split())


def test_readme_s_commands_are_those_that_are_run():
    section = read("README.md").partition("## In a container")[2].partition("\n## ")[0]
    blocks = "".join(re.findall(r"```\n(.*?)```", section, re.DOTALL))
    commands = [line.partition("  #")[0].strip() for line in blocks.splitlines()]
    assert len(commands) > 5
    script = read("tests/container/run")
    assert [command for command in commands if command not in script] == []
