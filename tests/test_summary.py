import synthetic

from experiment import claims, summary


def page(device="cpu", **options):
    benchmark, samples, verify = synthetic.experiment(device, **options)
    found = claims.claims(benchmark, samples, verify)
    return summary.summary(synthetic.facts(device), benchmark, found)


def test_the_first_line_is_the_answer():
    first = page().splitlines()[0]
    assert first.startswith("On cpu, online softmax is 1.33 [")
    assert "times as fast as naive at 256 × 262144" in first
    assert "auto is 1.59 times as fast as torch.softmax (geometric mean over 5 shapes)." in first


def test_what_was_not_measured_is_left_out_of_the_answer():
    units = {name: moved for name, moved in synthetic.UNITS.items() if name != "online"}
    first = page(units=units).splitlines()[0]
    assert "naive" not in first
    assert "auto is" in first


def test_the_table_has_every_shape_and_the_claims_every_verdict():
    text = page()
    for shapes in synthetic.GROUPS["cpu"].values():
        for rows, cols in shapes:
            assert f"| {rows} × {cols} |" in text
    assert [text.count(f"| C{i} |") for i in range(1, 6)] == [1] * 5
    assert "NOT TESTED" in text
    assert "A machine_of 100%" in text
