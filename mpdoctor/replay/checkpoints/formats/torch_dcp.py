"""A folder of `torch.distributed.checkpoint`: `.metadata` says which tensor lies where in which `.distcp` file.

Every tensor (or shard of one) is a small archive of torch.save inside a `.distcp` file, and so is every
other value. torchtitan, FSDP (Trainer, accelerate), NeMo 2 and Megatron's `torch_dist` write this format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from mpdoctor.replay.checkpoints.checkpoint import Checkpoint, Problem, ProblemKind, Role, TensorEntry
from mpdoctor.replay.checkpoints.files import Refused, Section, inside, names_in, open_regular, read_bytes, size_of
from mpdoctor.replay.checkpoints.format import Format, Seen
from mpdoctor.replay.checkpoints.names import printable
from mpdoctor.replay.checkpoints.nested import contents_of, import_problems
from mpdoctor.replay.checkpoints.numbers import number_at, scalar
from mpdoctor.replay.checkpoints.pickles import PickleFault, Record, plain, read_pickle
from mpdoctor.replay.checkpoints.roles import role_of
from mpdoctor.replay.checkpoints.torch_archive import PICKLE_LIMIT, fault_kind, locator, read_in_order
from mpdoctor.replay.checkpoints.training_state import settings_of

_PLAIN_LIMIT = 5000
"""Values other than tensors that are read at most; each is a file of its own inside the file."""
_PLAIN_BYTES = 1 << 22
_STEP_NAMES = ("step", "train_state.step", "global_step", "iteration")


@dataclass(frozen=True, slots=True)
class _Item:
    """A value and the stretch of a file that holds it."""

    name: str
    shard: tuple[int, ...] | None
    file: str
    offset: int
    length: int
    transformed: bool


def recognise(seen: Seen) -> int:
    """Its metadata, or its data files."""
    return 60 if ".metadata" in seen.names else 30 if any(name.endswith(".distcp") for name in seen.names) else 0


def read(path: Path) -> Checkpoint:
    """List tensors and plain values by the metadata. Raises Refused when there is none."""
    names = frozenset(names_in(path))
    if ".metadata" not in names:
        raise Refused(
            ProblemKind.MISSING, path / ".metadata", "the folder has .distcp files and no .metadata, which is written last: the save did not finish"
        )
    metadata = inside(path, ".metadata")
    try:
        pickled = read_pickle(read_bytes(metadata, PICKLE_LIMIT))
    except PickleFault as fault:
        raise Refused(fault_kind(fault), metadata, str(fault)) from None
    problems = import_problems(pickled.imports, metadata)
    fields = pickled.value.state if isinstance(pickled.value, Record) and isinstance(pickled.value.state, dict) else {}
    items = list(_items(fields.get("storage_data"), problems, metadata))
    paths = plain(fields.get("planner_data")) if isinstance(fields.get("planner_data"), dict) else {}
    tensor_names = _tensor_names(fields.get("state_dict_metadata"))
    tensors, values = _read_items(path, items, tensor_names, paths, problems)
    found = settings_of(_tree(values))
    return Checkpoint(
        path=path,
        format="torch-dcp",
        tensors=tuple(tensors),
        files=(metadata, *sorted({t.file for t in tensors})),
        training_args=found.training_args,
        param_groups=found.param_groups,
        scheduler=found.scheduler,
        scaler=found.scaler,
        rng=any("rng" in name for name in (*values, *tensor_names)),
        step=found.step if found.step is not None else _step(tensors),
        extra=found.extra,
        problems=tuple(problems),
    )


def _items(storage: Any, problems: list[Problem], metadata: Path) -> Iterator[_Item]:
    if not isinstance(storage, dict):
        problems.append(Problem(kind=ProblemKind.MALFORMED, file=metadata, text="it says nothing about where tensors are stored"))
        return
    for key, value in storage.items():
        index, info = _fields(key), _fields(value)
        name, file, offset, length = index.get("fqn"), info.get("relative_path"), info.get("offset"), info.get("length")
        if not isinstance(name, str) or not isinstance(file, str) or not isinstance(offset, int) or not isinstance(length, int):
            problems.append(
                Problem(kind=ProblemKind.MALFORMED, file=metadata, text=f"an entry without name, file, offset or length ({str(name)[:80]})")
            )
            continue
        shard = index.get("offset")
        yield _Item(name[:500], shard if isinstance(shard, tuple) else None, file, offset, length, bool(info.get("transform_descriptors")))


def _fields(value: Any) -> dict[Any, Any]:
    """Fields of a pickled dataclass: its state, or the arguments of its class in the order of the fields."""
    if isinstance(value, Record):
        if isinstance(value.state, dict):
            return value.state
        names = {"MetadataIndex": ("fqn", "offset", "index"), "_StorageInfo": ("relative_path", "offset", "length")}
        return dict(zip(names.get(value.name.rpartition(".")[2], ()), value.args, strict=False))
    return {}


def _tensor_names(metadata: Any) -> dict[str, int]:
    """Number of shards by tensor name, from the state dict's metadata."""
    found: dict[str, int] = {}
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        if isinstance(name, str) and isinstance(value, Record) and value.name.endswith("TensorStorageMetadata"):
            chunks = _fields(value).get("chunks")
            found[name] = len(chunks) if isinstance(chunks, list) else 1
    return found


def _read_items(
    path: Path, items: list[_Item], shards: dict[str, int], paths: dict[str, Any], problems: list[Problem]
) -> tuple[list[TensorEntry], dict[tuple[str, ...], Any]]:
    tensors: list[TensorEntry] = []
    values: dict[tuple[str, ...], Any] = {}
    by_file: dict[str, list[_Item]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    for name, members in by_file.items():
        try:
            place = inside(path, name)
            with open_regular(place) as file:
                for item in members:
                    parts = _path_of(item.name, paths)
                    if item.name in shards:
                        tensors += _tensor(file, place, item, parts, shards[item.name], problems)
                    elif len(values) < _PLAIN_LIMIT and item.length <= _PLAIN_BYTES:
                        values[parts] = _value(file, place, item, problems)
        except Refused as refused:
            text = f"{refused.problem.text} ({len(members)} values are in it)"
            problems.append(replace(refused.problem, text=text))
    return tensors, values


def _path_of(name: str, paths: dict[str, Any]) -> tuple[str, ...]:
    found = paths.get(name)
    return tuple(str(part) for part in found) if isinstance(found, list) and found else (name,)


def _section(file: BinaryIO, place: Path, item: _Item) -> Section:
    size = size_of(file)
    if item.offset < 0 or item.length < 0 or item.offset + item.length > size:
        text = f"{item.name!r} lies at bytes {item.offset:,} to {item.offset + item.length:,}, and the file has {size:,}"
        raise Refused(ProblemKind.TRUNCATED, place, text)
    if item.transformed:
        raise Refused(ProblemKind.NOT_JUDGED, place, f"{item.name!r} is compressed or encrypted")
    return Section(file, place, item.offset, item.length)


def _tensor(file: BinaryIO, place: Path, item: _Item, parts: tuple[str, ...], shards: int, problems: list[Problem]) -> list[TensorEntry]:
    try:
        section = _section(file, place, item)
        pickled, records = read_in_order(section)
    except Refused as refused:
        problems.append(replace(refused.problem, tensor=item.name))
        return []
    problems += import_problems(pickled.imports, place)
    found = contents_of(pickled.value, place, locator(section, records), number_at(file, place))
    problems += found.problems
    role = role_of(_role_path(parts))
    parameter = ".".join(parts[parts.index("state") + 1 : -1]) if "state" in parts[:-1] and role is not Role.WEIGHT else None
    stripped = parts[1:] if role is Role.WEIGHT and len(parts) > 1 and parts[0] in ("model", "app", "state_dict", "module") else parts
    label = ".".join(stripped) + (f"[{', '.join(map(str, item.shard))}]" if shards > 1 and item.shard is not None else "")
    return [replace(entry, name=printable(label), role=role, parameter=parameter) for entry in found.tensors[:1]]


def _role_path(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Names that were flattened into one (`optim.state.layers.0.weight.exp_avg`) are taken apart."""
    if len(parts) > 1:
        return parts
    pieces = tuple(parts[0].split("."))
    return pieces if pieces[0] in ("optim", "optimizer", "optimizers", "state", "rng_state", "ema", "scaler") else parts


def _value(file: BinaryIO, place: Path, item: _Item, problems: list[Problem]) -> Any:
    try:
        pickled, _ = read_in_order(_section(file, place, item))
    except Refused as refused:
        problems.append(replace(refused.problem, tensor=item.name))
        return None
    problems += import_problems(pickled.imports, place)
    return pickled.value


def _tree(values: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """Nested dictionaries of the plain values; numbered groups become a list."""
    root: dict[str, Any] = {}
    for parts, value in values.items():
        node = root
        for part in parts[:-1]:
            inner = node.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node[parts[-1]] = value
    for holder in list(root.values()):
        groups = holder.get("param_groups") if isinstance(holder, dict) else None
        if isinstance(groups, dict):
            holder["param_groups"] = list(groups.values())
            holder.setdefault("state", {})
    return root


def _step(tensors: list[TensorEntry]) -> int | None:
    found = next((t for t in tensors if t.name in _STEP_NAMES and t.numel == 1), None)
    value = scalar(found) if found is not None else None
    return int(value) if value is not None and abs(value) < 2**53 else None


FORMAT = Format(name="torch-dcp", title="torch.distributed.checkpoint folder", folder=True, recognise=recognise, read=read)
