"""The operator against float64, against torch, and against wrong use; on every device present."""

import itertools

import pytest
import torch
from devices import DEVICES, SERVED, softmax_or_skip

import online_softmax
from experiment.inputs import CASES
from experiment.reference import compare

every_algorithm = pytest.mark.parametrize("device, dtype, algorithm", SERVED)
every_device = pytest.mark.parametrize("device", DEVICES)


@every_algorithm
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.rows}x{case.cols}")
def test_within_tolerance_of_float64(device, dtype, algorithm, case):
    x = case.make(dtype, torch.device(device), seed=0)
    out = torch.full_like(x, torch.nan)
    softmax_or_skip(x, algorithm, out)
    errors = compare(out, x)
    assert errors.passed, errors


@every_algorithm
def test_every_small_size(device, dtype, algorithm):
    """Every column count around the vector and wave sizes, at every alignment of the rows."""
    for rows, cols in itertools.product((1, 2, 5), (*range(1, 70), 127, 129, 255, 257, 1025)):
        x = torch.randn(rows, cols, device=device).to(dtype)
        errors = compare(softmax_or_skip(x, algorithm), x)
        assert errors.passed, (rows, cols, errors)


@every_algorithm
@pytest.mark.parametrize("offset", [1, 2, 3, 7])
@pytest.mark.parametrize("cols", [1000, 1001, 70001])
def test_input_and_output_off_the_vector_boundary(device, dtype, algorithm, offset, cols):
    x = torch.randn(7 * cols + offset, device=device).to(dtype)[offset:].view(7, cols)
    assert compare(softmax_or_skip(x, algorithm), x).passed
    buffer = torch.full((7 * cols + 2 * offset,), 5.0, device=device, dtype=dtype)
    out = buffer[offset:-offset].view(7, cols)
    softmax_or_skip(x.clone(), algorithm, out)
    assert compare(out, x).passed
    assert (buffer[:offset] == 5).all() and (buffer[-offset:] == 5).all()


@every_algorithm
@pytest.mark.parametrize("cols", [1001, 300_001])
def test_the_same_bits_twice(device, dtype, algorithm, cols):
    x = torch.randn(3, cols, device=device).to(dtype)
    first = softmax_or_skip(x, algorithm)
    assert torch.equal(first, softmax_or_skip(x, algorithm))


@every_algorithm
@pytest.mark.parametrize("cols", [100, 5000, 100_000])
def test_in_place(device, dtype, algorithm, cols):
    x = torch.randn(9, cols, device=device).to(dtype)
    expected = softmax_or_skip(x, algorithm)
    assert softmax_or_skip(x, algorithm, out=x) is x
    torch.testing.assert_close(x, expected)


@every_device
def test_error_at_most_twice_that_of_torch(device):
    x = torch.randn(64, 8192, device=device) * 10
    exact = torch.softmax(x.double(), -1)
    theirs = (torch.softmax(x, -1) - exact).abs().max()
    ours = (online_softmax.softmax(x) - exact).abs().max()
    assert ours <= max(2 * theirs, 2 * torch.finfo(x.dtype).eps * exact.max())


@every_device
def test_denormals_survive_the_import(device):
    tiny = torch.tensor([1e-40], device=device)
    assert (tiny * 1.0).item() > 0


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (2, 0, 4), (0, 5), (5, 0)])
@every_device
def test_any_number_of_dimensions(device, shape):
    x = torch.randn(shape, device=device)
    torch.testing.assert_close(online_softmax.softmax(x), torch.softmax(x, -1))
    torch.testing.assert_close(online_softmax.softmax(x, max(len(shape) - 1, 0)), x.softmax(-1))


@every_device
def test_strided_input_and_output(device):
    x = torch.randn(40, 30, device=device).t()
    torch.testing.assert_close(online_softmax.softmax(x), torch.softmax(x, -1))
    out = torch.empty(40, 30, device=device).t()
    online_softmax.softmax(x, out=out)
    torch.testing.assert_close(out, torch.softmax(x, -1))


@every_device
def test_dtype_converts_first(device):
    x = torch.arange(6, device=device).view(2, 3)
    y = online_softmax.softmax(x, dtype=torch.float32)
    torch.testing.assert_close(y, torch.softmax(x, -1, dtype=torch.float32))


@every_device
def test_gradient_is_that_of_torch(device):
    x = torch.randn(8, 100, device=device, requires_grad=True)
    dy = torch.randn(8, 100, device=device)
    (ours,) = torch.autograd.grad(online_softmax.softmax(x), x, dy)
    (theirs,) = torch.autograd.grad(torch.softmax(x, -1), x, dy)
    torch.testing.assert_close(ours, theirs)


@every_device
def test_torch_accepts_the_registration(device):
    x = torch.randn(4, 10, device=device)
    op = torch.ops.online_softmax.softmax
    torch.library.opcheck(op.default, (x.clone().requires_grad_(), -1))
    torch.library.opcheck(op.default, (x, -1, None, "naive"))
    # torch does not functionalise out= overloads of custom operators.
    parts = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(op.out, (x, -1), {"out": torch.empty_like(x)}, test_utils=parts)


@every_device
def test_the_posts_two_calls(device):
    x = torch.randn(16, 333, device=device) * 10
    for forward in (online_softmax.naive_forward, online_softmax.online_forward):
        torch.testing.assert_close(forward(x), torch.softmax(x, -1))


@every_device
def test_the_post_refuses(device):
    x = torch.randn(4, 6, device=device)
    for wrong, error, message in [
        (x.t(), ValueError, r"strides \(1, 6\); accepted: contiguous"),
        (x[0], ValueError, "1 dimensions; accepted: 2"),
        (x.double(), TypeError, "torch.float64; accepted: torch.float32"),
        (x.to("meta"), ValueError, "meta; accepted: cpu, cuda"),
    ]:
        for forward in (online_softmax.naive_forward, online_softmax.online_forward):
            with pytest.raises(error, match=message):
                forward(wrong)


@every_device
def test_wrong_use_is_named(device):
    x = torch.randn(4, 6, device=device)
    softmax = online_softmax.softmax
    for call, error, message in [
        (lambda: softmax(x.int()), TypeError, "dtype Int on .*; accepted: Float"),
        (lambda: softmax(x, 0), ValueError, "dim=0 .* accepted: the last dimension"),
        (lambda: softmax(x, 7), IndexError, r"range of \[-2, 1\], but got 7"),
        (lambda: softmax(x, algorithm="fast"), ValueError, "'fast' .* accepted: auto, naive"),
        (lambda: softmax(x, out=x.to("meta")), ValueError, "out is on meta and the input on"),
        (lambda: softmax(x, out=x.double()), TypeError, "out has dtype Double; accepted: Float"),
        (lambda: softmax(x.view(-1)[1:], out=x.view(-1)[:-1]), RuntimeError, "single memory"),
        (lambda: softmax(x, out=x.clone().requires_grad_()), RuntimeError, "out= has no gradient"),
        (lambda: online_softmax.algorithms("meta"), ValueError, "'meta'; accepted: cpu, cuda"),
    ]:
        with pytest.raises(error, match=message):
            call()


@every_algorithm
@pytest.mark.parametrize("cols", [500, 5000, 200_000])
def test_a_graph_replays_on_new_input(device, dtype, algorithm, cols):
    if device == "cpu":
        pytest.skip("graphs are a GPU's")
    x = torch.randn(32, cols, device=device).to(dtype)
    out = torch.empty_like(x)
    softmax_or_skip(x, algorithm, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        online_softmax.softmax(x, algorithm=algorithm, out=out)
    for _ in range(3):
        x.normal_()
        out.zero_()
        graph.replay()
        assert compare(out, x).passed


@every_device
def test_float64(device):
    x = torch.randn(7, 1001, device=device, dtype=torch.float64)
    if device == "cpu":
        with pytest.raises(TypeError, match="dtype Double on cpu; accepted: Float"):
            online_softmax.softmax(x)
    else:
        torch.testing.assert_close(online_softmax.softmax(x), torch.softmax(x, -1))
