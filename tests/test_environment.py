"""The device's name, and facts that are found or null."""

import importlib.metadata
import json
from types import SimpleNamespace

import pytest
import torch

from experiment import InputError, environment

H200 = SimpleNamespace(name="NVIDIA H200", multi_processor_count=132)
MI300X = SimpleNamespace(
    name="AMD Instinct MI300X", gcnArchName="gfx942:sramecc+:xnack-", multi_processor_count=304
)


def test_names_of_devices(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", None)
    assert environment.gpu_name(H200) == "cuda-nvidia-h200"
    monkeypatch.setattr(torch.version, "hip", "7.0")
    assert environment.gpu_name(MI300X) == "rocm-gfx942-304cu"


def test_a_name_stands_for_itself():
    assert environment.device_name("rocm-gfx942-304cu") == "rocm-gfx942-304cu"


def test_auto_without_a_gpu_is_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert environment.open_device("auto") == ("cpu", torch.device("cpu"))


def test_a_gpu_that_the_operator_was_not_built_for_is_not_taken(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(environment.online_softmax, "build_info", lambda: {"backend": "cpu"})
    assert environment.device_name("auto") == "cpu"


def test_a_device_that_this_machine_is_not_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="'rocm-gfx942-304cu' was asked for.*is 'cpu'"):
        environment.open_device("rocm-gfx942-304cu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: H200)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(InputError, match="'cuda-nvidia-b200' was asked for.*'cuda-nvidia-h200'"):
        environment.open_device("cuda-nvidia-b200")
    assert environment.open_device("cuda-nvidia-h200")[1] == torch.device("cuda", 0)


def test_the_command_writes_every_fact(tmp_path):
    config = tmp_path / "config.yaml"
    group = {"reason": "A sentence.", "runs_on": "cpu", "dtypes": ["float32"], "shapes": [[2, 4]]}
    config.write_text(json.dumps({"seed": 7, "groups": {"one": group}}))
    out = tmp_path / "environment.json"
    environment.main(["--config", str(config), "--device", "cpu", "--out", str(out)])
    facts = json.loads(out.read_text())
    documented = [
        "run_id", "date", "seed", "device", "device_facts", "driver", "rocm", "cuda", "torch",
        "python", "operator", "cpu", "os", "container_image", "git", "packages",
    ]  # fmt: skip
    assert list(facts) == documented
    assert all(name in environment.__doc__ for name in documented)
    assert facts["seed"] == 7
    assert facts["device"] == "cpu"
    assert facts["operator"]["compiler"]
    assert facts["packages"]["jsonschema"] == importlib.metadata.version("jsonschema")


def test_a_package_that_is_there_twice_is_the_one_that_is_imported(tmp_path, monkeypatch):
    for folder, text in {
        "own/Thing-1.dist-info": "Name: Thing\nVersion: 1\n",
        "base/Thing-2.dist-info": "Name: Thing\nVersion: 2\n",
        "base/other-3.dist-info": "Name: other\nVersion: 3\n",
        "base/removed-4.dist-info": "",
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "METADATA").write_text(text)
    monkeypatch.setattr("sys.path", [str(tmp_path / "own"), str(tmp_path / "base")])
    assert environment.packages() == {"other": "3", "thing": "1"}


def test_runs_have_names_of_their_own():
    one, other = (environment.collect("cpu", torch.device("cpu"), 1) for _ in range(2))
    assert one["run_id"] != other["run_id"]


def test_outside_a_repository_the_commit_is_what_was_said(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for said, commit in ((None, None), ("", None), ("abc", "abc")):
        monkeypatch.delenv("ONLINE_SOFTMAX_COMMIT", raising=False)
        if said is not None:
            monkeypatch.setenv("ONLINE_SOFTMAX_COMMIT", said)
        assert environment.git() == {"commit": commit, "dirty": None}


def test_an_absent_program_gives_nothing():
    assert environment.output("no-such-program-anywhere") is None
    assert environment.output("false") is None


def test_the_last_level_caches_of_a_machine_add_up(tmp_path):
    for cpu, shared in enumerate(["0-1", "0-1", "2-3", "2-3"]):
        for index, (level, size, whom) in enumerate([(1, "32K", str(cpu)), (3, "4096K", shared)]):
            cache = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            for name, text in (("level", level), ("size", size), ("shared_cpu_list", whom)):
                (cache / name).write_text(f"{text}\n")
    assert environment.cpu_llc_bytes(tmp_path) == 2 * 4096 * 1024
    assert environment.cpu_llc_bytes(tmp_path / "absent") is None


def test_the_last_level_cache_of_an_amd_gpu(tmp_path):
    for node, simds, sizes in ((0, 0, [524288]), (1, 1216, [32, 4096, 262144])):
        folder = tmp_path / str(node)
        for i, size in enumerate(sizes):
            (folder / "caches" / str(i)).mkdir(parents=True)
            (folder / "caches" / str(i) / "properties").write_text(f"level {i + 1}\nsize {size}\n")
        (folder / "properties").write_text(f"cpu_cores_count 0\nsimd_count {simds}\n")
    assert environment.kfd_llc_bytes(tmp_path) == 256 * 2**20
    assert environment.kfd_llc_bytes(tmp_path / "absent") is None


def test_the_peak_is_reckoned_only_where_it_is_known():
    hbm = SimpleNamespace(memory_clock_rate=3201000, memory_bus_width=6144)
    assert environment.peak_gb_per_s(hbm, "sm_90") == pytest.approx(4916.7)
    assert environment.peak_gb_per_s(hbm, "gfx1100") is None
    assert environment.peak_gb_per_s(SimpleNamespace(), "sm_90") is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_facts_of_the_gpu():
    facts = environment.gpu_facts(torch.device("cuda", 0))
    assert facts["kind"] == "gpu"
    assert facts["units"] > 0
    assert facts["memory_bytes"] > 0
