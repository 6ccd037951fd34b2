"""Tables as people see them."""

from consilience.report.tables import show, table


def test_numbers_are_never_cut_off_however_narrow_the_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    heads = ["", "runs/one-of-them", "runs/another"]
    show(table(heads, [["together: held-out epistemic", 0.000324551, 12345]], title="words " * 20))
    title, head, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert title == ["words"] * 20
    assert head == heads[1:]
    assert row[-2:] == ["0.0003246", "12,345"]
