"""Inputs that cannot be used: one clear message each (file, line, way out), the right exit code, no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.torch

CHECKPOINTS = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints"

GOOD = """
def build():
    model = nn.Linear(4, 1)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)
def batches():
    return [torch.ones(2, 4) for _ in range(3)]
def loss(model, batch):
    return model(batch).square().mean()
"""
FIRST_LINE = 4
"""Line of the recipe's file on which the text above begins (its first line is empty)."""

Recipe = Callable[..., Path]


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(CHECKPOINTS / name, folder / name))


# -- checkpoints


def test_a_missing_checkpoint(replay: Any, tmp_path: Path) -> None:
    replay(tmp_path / "checkpoint-9").refused("checkpoint-9")


def test_an_empty_folder(replay: Any, tmp_path: Path) -> None:
    replay(tmp_path).refused(str(tmp_path))


def test_a_foreign_folder(replay: Any, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" * 64)
    (tmp_path / "notes.txt").write_text("no checkpoint", encoding="utf-8")
    replay(tmp_path).refused(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"PK\x03\x04 not a zip", b"\x80\x02}q\x00", "\u00e4\u00f6 text\n".encode()])
@pytest.mark.parametrize("name", ["model.pt", "model.safetensors", "model.bin"])
def test_a_file_that_is_no_checkpoint(name: str, content: bytes, replay: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    replay(tmp_path / name).refused(name)


def test_truncated_weights(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5000])
    ran = replay(folder, "--steps", 1)
    assert ran.exit_code in (1, 2), ran.stderr
    assert "model.safetensors" in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_config_that_does_not_fit_the_weights_names_the_keys(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["n_embd"] *= 2
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    replay(folder, "--steps", 1).refused(
        "healthy-bf16", "28 tensors do not fit", "transformer.h.0.attn.c_attn.bias ([96] in the file, [192] by config.json)", "and 25 more"
    )


def test_a_config_without_a_sensible_size(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["n_head"] = 7
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    replay(folder, "--steps", 1).refused("config.json", "--recipe")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"architectures": ["GPT2LMHeadModel"], "n_embd": "many"}'])
def test_a_config_that_is_no_config(text: str, replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    (folder / "config.json").write_text(text, encoding="utf-8")
    ran = replay(folder, "--steps", 1)
    assert ran.exit_code in (0, 1, 2), ran.stderr
    assert "Traceback" not in ran.stderr
    if ran.exit_code == 2:
        ran.refused("config.json")
    else:  # judged by its files; that no step was replayed is said
        assert any("replay" in what for what, _ in ran.skipped)


def test_a_model_class_that_nobody_knows_is_judged_by_its_files(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["MyOwnModel"]}), encoding="utf-8")
    ran = replay(folder)
    assert ran.exit_code == 0
    assert any("no model class MyOwnModel; a recipe would" in why for _, why in ran.skipped)


def test_code_of_the_folder_is_not_run(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_mine.Mine"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "modeling_mine.py").write_text("import pathlib\npathlib.Path(__file__).with_name('was_run').touch()\n", encoding="utf-8")
    ran = replay(folder)
    assert any("--trust-remote-code" in why for _, why in ran.skipped)
    assert not (folder / "was_run").exists()


def test_an_optimizer_state_of_another_model(replay: Any, tmp_path: Path) -> None:
    folder = copied("healthy-bf16", tmp_path)
    shutil.copy(CHECKPOINTS / "broken-row" / "optimizer.pt", folder / "optimizer.pt")
    replay(folder, "--steps", 1).refused("optimizer.pt", "--recipe")


def test_a_checkpoint_that_does_not_fit_the_recipe_names_the_keys(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(1, 5), "extra": torch.ones(2)}, tmp_path / "model.pt")
    replay(tmp_path / "model.pt", "--recipe", recipe(GOOD)).refused("recipe.py", "weight, (1, 5) in the file, (1, 4) in the model", "extra", "bias")


# -- recipes


def test_neither_checkpoint_nor_recipe(replay: Any) -> None:
    replay().refused("nothing to replay", "--recipe FILE.py", "--trace")


def test_a_missing_recipe(replay: Any, tmp_path: Path) -> None:
    replay("--recipe", tmp_path / "none.py").refused("none.py", "no such file")


def test_a_folder_as_recipe(replay: Any, tmp_path: Path) -> None:
    replay("--recipe", tmp_path).refused("is a folder")


def test_a_recipe_with_a_syntax_error(replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe("def build(:\n    pass\n")).refused("recipe.py:4: not valid Python")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00b", b"import torch\x00"], ids=["not UTF-8", "a null byte"])
def test_a_recipe_that_is_no_text(content: bytes, replay: Any, tmp_path: Path) -> None:
    (tmp_path / "recipe.py").write_bytes(content)
    replay("--recipe", tmp_path / "recipe.py").refused("recipe.py")


@pytest.mark.parametrize("name", ["build", "batches", "loss"])
def test_a_recipe_that_lacks_a_function(name: str, replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe(GOOD.replace(f"def {name}(", f"def other_{name}("))).refused(f"does not define {name}()", "recipe.py")


def test_a_recipe_that_raises_when_it_is_loaded(replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe("import no_such_package\n")).refused("recipe.py:4: ModuleNotFoundError", "while it was loaded", "no_such_package")


def test_a_recipe_that_ends_the_process(replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe("import sys\nsys.exit('no data here')\n")).refused("recipe.py:5", "SystemExit", "no data here")


@pytest.mark.parametrize(("name", "line"), [("build", 2), ("batches", 5)])
def test_a_function_that_raises(name: str, line: int, replay: Any, recipe: Recipe) -> None:
    path = recipe(GOOD.replace(f"def {name}():", f"def {name}():\n    raise ValueError('of mine')"))
    replay("--recipe", path).refused(f"recipe.py:{FIRST_LINE + line}: ValueError in {name}(): of mine", "must run without mpdoctor")


@pytest.mark.parametrize("returned", ["model", "(model,)", "None", "(1, 2)"])
def test_build_that_returns_something_else(returned: str, replay: Any, recipe: Recipe) -> None:
    text = GOOD.replace("return model, torch.optim.AdamW(model.parameters(), lr=0.01)", f"return {returned}")
    replay("--recipe", recipe(text)).refused("build() must return (model, optimizer)")


def test_an_optimizer_that_is_none(replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe(GOOD.replace("torch.optim.AdamW(model.parameters(), lr=0.01)", "None"))).refused("optimizer")


@pytest.mark.parametrize("returned", ["[]", "None", "3"])
def test_batches_that_are_none(returned: str, replay: Any, recipe: Recipe) -> None:
    text = GOOD.replace("return [torch.ones(2, 4) for _ in range(3)]", f"return {returned}")
    replay("--recipe", recipe(text)).refused("batches()", "recipe.py")


@pytest.mark.parametrize(
    ("returned", "told"),
    [("model(batch)", "shape (2, 1)"), ("1.0", "float"), ("None", "NoneType"), ("dict(loss=model(batch).mean())", "dict")],
)
def test_a_loss_that_is_no_scalar(returned: str, told: str, replay: Any, recipe: Recipe) -> None:
    text = GOOD.replace("return model(batch).square().mean()", f"return {returned}")
    replay("--recipe", recipe(text)).refused("loss(model, batch) must return a scalar tensor", told)


@pytest.mark.parametrize("config", ["CONFIG = 3\n", "CONFIG = dict(scaler=True, backoff_factor=2.0)\n"])
def test_a_config_of_the_recipe_that_cannot_be(config: str, replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe(GOOD + config)).refused("CONFIG")


def test_a_batch_that_does_not_fit_the_model_is_a_symptom(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe(GOOD.replace("torch.ones(2, 4)", "torch.ones(2, 9)")))
    assert ran.exit_code == 1
    assert [s["id"] for s in ran.report["symptoms"]] == ["exception"]
    assert ran.report["crashes"] == []


@pytest.mark.parametrize("name", ["build", "batches", "loss"])
def test_too_little_memory_says_nothing_about_the_run(name: str, replay: Any, recipe: Recipe) -> None:
    head = next(line for line in GOOD.splitlines() if line.startswith(f"def {name}("))
    text = GOOD.replace(head, f"{head}\n    torch.empty(1 << 50)")
    replay("--recipe", recipe(text)).refused("out of memory", "lower the batch size", "--device cpu", exit_code=3)


def test_too_little_memory_under_the_tracer_leaves_what_the_guard_saw(replay: Any, recipe: Recipe) -> None:
    count = "import pathlib\nruns = pathlib.Path(__file__).with_name('runs')\nwith runs.open('a') as f: f.write('.')\n"
    text = count + GOOD.replace("    return model(batch)", "    torch.empty(1 << 50 if runs.stat().st_size > 1 else 1)\n    return model(batch)")
    ran = replay("--recipe", recipe(text))
    assert (ran.exit_code, len(ran.report["steps"])) == (0, 3)
    assert any("out of memory" in why for _, why in ran.skipped)


def test_a_recipe_that_prints_does_not_spoil_the_report(replay: Any, recipe: Recipe) -> None:
    ran = replay("--recipe", recipe("print('hello')\n" + GOOD.replace("    return model(batch)", "    print('loss')\n    return model(batch)")))
    assert ran.exit_code == 0
    assert ran.report["outcome"] == "healthy"
    assert "hello" in ran.stderr


# -- data


def data(folder: Path, content: str | bytes, name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


ROWS = 20
GOOD_ROWS = "".join(json.dumps({"text": f"sentence number {i}", "label": 1.0}) + "\n" for i in range(ROWS))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.jsonl", GOOD_ROWS + '{"text": "half\n', "data.jsonl:21: not JSON"),
        ("data.jsonl", GOOD_ROWS + "[1, 2]\n", "data.jsonl:21: a row must be an object or a text"),
        ("data.jsonl", "", "holds no row"),
        ("data.jsonl", "\n\n", "holds no row"),
        ("data.jsonl", b"\xff\xfe{\x00}", "is not UTF-8"),
        ("data.jsonl", "[" * 100_000, "data.jsonl:1"),
        ("data.json", "{", "data.json:1"),
        ("data.json", "3", "not a list of objects"),
        ("data.json", "[" * 100_000, "nested too deeply"),
        ("data.csv", "", "holds no row"),
        ("data.csv", 'text,label\n"' + "x" * 200_000 + '",1\n', "not CSV"),
        ("data.parquet", b"PAR1 no", "not a parquet file"),
        ("data.pt", b"\x80\x02c__builtin__\neval\n", "weights-only loader refuses it"),
        ("data.xlsx", b"PK", "unknown kind of data file"),
    ],
)
def test_a_data_file_that_cannot_be_read(name: str, content: str | bytes, words: str, replay: Any, tmp_path: Path) -> None:
    replay(CHECKPOINTS / "broken-row", "--data", data(tmp_path, content, name), "--steps", 1).refused(name, words)


def test_missing_data(replay: Any, tmp_path: Path) -> None:
    replay(CHECKPOINTS / "broken-row", "--data", tmp_path / "none.jsonl").refused("none.jsonl", "no such file")


def test_a_folder_as_data(replay: Any, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").mkdir()
    replay(CHECKPOINTS / "broken-row", "--data", tmp_path / "data.jsonl").refused("data.jsonl")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"message": "hello", "label": 1.0}], "data.jsonl:1: neither input_ids nor a text"),
        ([{"text": "hello"}], "data.jsonl:1: no label in this row"),
        ([{"text": "hello", "label": "very good"}], "data.jsonl:1: the label 'very good'"),
        ([{"text": "hello", "label": [1, 2]}], "data.jsonl:1: the label [1, 2]"),
        ([{"input_ids": ["a", "b"], "label": 1.0}], "data.jsonl:1"),
        ([{"text": {"en": "hello"}, "label": 1.0}], "data.jsonl:1"),
    ],
)
def test_rows_with_other_fields_than_the_model_needs(rows: list[dict[str, Any]], words: str, replay: Any, tmp_path: Path) -> None:
    path = data(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    replay(CHECKPOINTS / "broken-row", "--data", path, "--steps", 1).refused(words)


@pytest.mark.parametrize(
    ("row", "words"),
    [({"past_values": [[1.0], [2.0, 3.0]], "future_values": [[1.0]]}, "past_values"), ({"past_values": "many"}, "data.jsonl:1")],
)
def test_numbers_of_the_wrong_shape(row: dict[str, Any], words: str, replay: Any, tmp_path: Path) -> None:
    replay(CHECKPOINTS / "no-loss-scaling", "--data", data(tmp_path, json.dumps(row) + "\n"), "--steps", 1).refused(words)


def test_data_beside_a_recipe_is_told(replay: Any, recipe: Recipe, tmp_path: Path) -> None:
    replay("--recipe", recipe(GOOD), "--data", data(tmp_path, GOOD_ROWS)).refused("--data", "recipe")
    replay("--recipe", recipe(GOOD), "--precision", "bf16").refused("--precision", "recipe")


# -- traces


RUN = '{"schema": "mpdoctor.trace/1", "kind": "run"}\n'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("{", "trace.jsonl:1: not JSON"),
        ("[]\n", "trace.jsonl:1"),
        ('{"schema": "mpdoctor.trace/9", "kind": "run"}\n', "trace.jsonl:1: not a trace of mpdoctor"),
        ('{"text": "a data file"}\n', "trace.jsonl:1: not a trace of mpdoctor"),
        (
            RUN.replace('"run"', '"run", "steps": 3, "failing_step": "two"'),
            "not the run of a trace: failing_step should be int, not a text",
        ),
        (RUN + '{"kind": "step"}\n', "trace.jsonl:2: not a line of a trace: the object lacks step"),
        (RUN + '{"kind": "step", "step": 0, "loss": "much"}\n', "trace.jsonl:2: not a line of a trace: loss should be float, not a text"),
        (RUN + '{"kind": "step", "step": 0, "loss": NaN}\n', "trace.jsonl:2: not JSON: NaN is no JSON"),
        (RUN + '{"kind": "step", "step": 0}\n' * 2, "a step is recorded twice"),
        (RUN + '{"kind": "dance"}\n', "kind is 'dance'"),
        (
            RUN + '{"kind": "trace", "step": 0, "timeline": [{"note": "", "site": {"step": 0, "phase": "lunch"}}]}\n',
            "phase is 'lunch', not one",
        ),
        (RUN + '{"kind": "trace", "step": 0, "rounded_positions": [["a", "b", 1]]}\n', "rounded_positions[0] should hold 4 values, not 3"),
        (RUN + "[" * 100_000 + "\n", "trace.jsonl:2: not JSON"),
        (b"\x80\x02\xff", "is not UTF-8"),
    ],
)
def test_a_trace_that_cannot_be_read(content: str | bytes, words: str, replay: Any, tmp_path: Path) -> None:
    replay("--trace", data(tmp_path, content, "trace.jsonl")).refused("trace.jsonl", words)


def test_a_trace_that_is_no_parquet(replay: Any, tmp_path: Path) -> None:
    replay("--trace", data(tmp_path, b"PAR1", "trace.parquet")).refused("trace.parquet", "not a parquet file")


def test_a_parquet_file_of_something_else(replay: Any, tmp_path: Path) -> None:
    import pandas

    pandas.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "trace.parquet")
    replay("--trace", tmp_path / "trace.parquet").refused("trace.parquet", "'record'")


def test_a_missing_trace(replay: Any, tmp_path: Path) -> None:
    replay("--trace", tmp_path / "none.jsonl").refused("none.jsonl", "no such file")


def test_a_folder_as_trace(replay: Any, tmp_path: Path) -> None:
    replay("--trace", tmp_path).refused("is a folder, not a trace")


# -- options


@pytest.mark.parametrize("option", [("--steps", 0), ("--steps", "many"), ("--budget", -1), ("--device", "tpu"), ("--precision", "fp4")])
def test_options_that_cannot_be(option: tuple[str, object], replay: Any, recipe: Recipe) -> None:
    replay("--recipe", recipe(GOOD), *option).refused(option[0])
