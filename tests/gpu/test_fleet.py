"""`--gpu`: names, generations, identities."""

import pytest

from mpdoctor.core.device import Support
from mpdoctor.core.errors import UsageError
from mpdoctor.gpu import fleet
from mpdoctor.gpu.fleet import resolve_gpus


def names(*texts):
    return [gpu.name for gpu in resolve_gpus(texts)]


def test_several_at_once_in_their_order_each_once():
    assert names("v100,a100", "4x h100", "V100-32GB", "8.6") == ["Tesla V100", "A100", "H100", "compute capability 8.6"]


@pytest.mark.parametrize(
    ("text", "capability"), [("8.6", (8, 6)), ("sm_86", (8, 6)), ("sm90a", (9, 0)), ("sm_120", (12, 0)), ("cc 7.5", (7, 5)), ("14.0", (14, 0))]
)
def test_a_compute_capability_is_a_gpu(text, capability):
    (gpu,) = resolve_gpus([text])
    assert gpu.compute_capability.value == capability
    assert gpu.vendor == "nvidia" and gpu.source == "table"


@pytest.mark.parametrize("text", ["8.1", "4.0", "7.9", "gfx123", "gfx9zz", "nonsense", "86"])
def test_what_no_gpu_has_is_refused(text):
    with pytest.raises(UsageError) as told:
        resolve_gpus([text])
    assert told.value.hint and told.value.exit_code == 2


def test_an_llvm_target_is_a_gpu():
    (gpu,) = resolve_gpus(["gfx942"])
    assert (gpu.vendor, gpu.metric("target").value, gpu.formats.fp8) == ("amd", "gfx942", Support.TENSOR_CORES)


def test_nominal_memory_is_told_where_the_name_says_it():
    assert resolve_gpus(["a100-40gb"])[0].metric("memory_total_bytes").value == 40 * 2**30
    assert resolve_gpus(["a100"])[0].metric("memory_total_bytes").reason == "sold with 40 or 80 GiB"


def test_nothing_named_is_nothing():
    assert resolve_gpus([]) == ()
    with pytest.raises(UsageError, match="empty"):
        resolve_gpus([","])


def test_gpus_of_this_machine_by_uuid_or_address(read, monkeypatch):
    machine = read("mig")
    monkeypatch.setattr(fleet, "_present", lambda: machine.gpus)
    first, second = machine.gpus
    assert resolve_gpus(["GPU-aaaaaaaa-0000-0000-0000-000000000002"]) == (second,)
    assert resolve_gpus(["MIG-bbbbbbbb-0000-0000-0000-000000000001"]) == (first,)
    assert resolve_gpus(["02:00.0"]) == (second,)
    assert resolve_gpus(["auto"]) == (first, second)
    for wrong, words in (("GPU-aaaaaaaa", "several GPUs"), ("GPU-0000", "no GPU in this machine")):
        with pytest.raises(UsageError, match=words):
            resolve_gpus([wrong])
