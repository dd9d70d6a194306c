"""`defaults` of Hydra: which files are merged, and where their content goes."""

from __future__ import annotations

from mpdoctor.check.includes import with_bases
from mpdoctor.check.sources.load import load


def test_a_bare_name_is_the_file_beside_it_and_what_it_says_wins_over_the_group_before(tmp_path):
    (tmp_path / "optim").mkdir()
    (tmp_path / "actor").mkdir()
    (tmp_path / "optim" / "adam.yaml").write_text("lr: 1.0e-3\neps: 1.0e-8\n")
    (tmp_path / "actor" / "base.yaml").write_text("optim:\n  lr: 1.0e-6\n")
    (tmp_path / "actor" / "small.yaml").write_text("defaults:\n  - ../optim@optim: adam\n  - base\n  - _self_\nclip: 1.0\n")
    path = tmp_path / "train.yaml"
    path.write_text("defaults:\n  - actor@run.actor: small\n  - _self_\n")
    root = with_bases(load(str(path))[0], [str(tmp_path)]).root
    assert root.get("run.actor.optim.lr").value == 1e-6
    assert root.get("run.actor.optim.lr").source.endswith("actor/base.yaml")
    assert root.get("run.actor.optim.eps").value == 1e-8
    assert root.get("run.actor.clip").value == 1.0


def test_a_bare_name_with_a_package(tmp_path):
    (tmp_path / "base.yaml").write_text("lr: 1.0e-5\n")
    path = tmp_path / "train.yaml"
    path.write_text("defaults: [base@optim, absent]\n")
    assert with_bases(load(str(path))[0]).root.get("optim.lr").value == 1e-5
