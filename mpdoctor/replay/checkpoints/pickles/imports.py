"""What a real unpickler would import from a file, and how bad that is."""

from __future__ import annotations

from enum import IntEnum

from mpdoctor.replay.checkpoints.pickles.records import Global


class Danger(IntEnum):
    """How bad it is that a pickle names a class or function."""

    EXPECTED = 0
    """torch, numpy, the standard containers, and data classes of the training frameworks."""
    FOREIGN = 1
    """Somebody's own code: importing it runs that module, but it is what pickles are made for."""
    RUNS_CODE = 2
    """A function that runs commands or code, reads or writes files, or imports at will: no checkpoint needs it."""


# fmt: off
_EXPECTED_MODULES = (
    "accelerate", "argparse", "collections", "copyreg", "datetime", "decimal", "deepspeed", "enum", "fractions", "lightning",
    "lightning_fabric", "megatron", "nemo", "numpy", "omegaconf", "pathlib", "peft", "pytorch_lightning", "torch", "torchao", "torchvision",
    "transformers", "trl", "uuid", "__torch__",
)
_EXPECTED_BUILTINS = frozenset({
    "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "range", "set", "slice", "str", "tuple",
    "type",
})
# fmt: on
_EXPECTED_NAMES = frozenset(
    {"_codecs.encode", "functools.partial", "operator.itemgetter", "typing.Any", "types.SimpleNamespace", "_operator.itemgetter"}
)
# fmt: off
_RUNNING_MODULES = frozenset({
    "_frozen_importlib", "_io", "_posixsubprocess", "_pickle", "_winapi", "asyncio", "bdb", "builtins", "cloudpickle", "code", "codeop",
    "commands", "concurrent", "ctypes", "dill", "doctest", "fcntl", "ftplib", "glob", "http", "idlelib", "imp", "importlib", "inspect",
    "io", "joblib", "linecache", "marshal", "mmap", "multiprocessing", "nt", "ntpath", "operator", "_operator", "os", "pdb", "pickle",
    "pip", "pkgutil", "platform", "posix", "posixpath", "profile", "pty", "pydoc", "requests", "resource", "runpy", "sched", "select",
    "setuptools", "shelve", "shutil", "signal", "site", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "sys",
    "tarfile", "tempfile", "test", "threading", "timeit", "trace", "types", "urllib", "uu", "venv", "webbrowser", "winreg", "xmlrpc",
    "zipfile", "zipimport",
})
_RUNNING_PREFIXES = (
    "numpy.testing", "numpy.f2py", "numpy.distutils", "numpy.ctypeslib", "numpy.lib.npyio", "numpy.load", "numpy.fromfile", "numpy.memmap",
    "torch.load", "torch.hub", "torch.jit", "torch.package", "torch.serialization.load", "torch.ops", "torch.classes",
    "torch.distributed.rpc", "torch.multiprocessing", "torch.utils.cpp_extension", "torch.utils.data.datapipes.utils.decoder",
    "torch.utils.collect_env", "torch.utils.bottleneck", "torch.utils._config_module", "torch.testing", "torch._inductor.codecache",
    "torch._inductor.runtime.compile_tasks", "torch._dynamo", "torch.fx", "torch.export", "torch.onnx", "torch.storage.pickle",
    "transformers.dynamic_module_utils", "transformers.utils.hub", "functools.reduce",
)
# fmt: on


def danger_of(named: Global) -> Danger:
    """How bad it is that a pickle names this class or function."""
    full, root = str(named), named.module.partition(".")[0]
    if named.module in ("builtins", "__builtin__"):
        return Danger.EXPECTED if named.name in _EXPECTED_BUILTINS else Danger.RUNS_CODE
    if full in _EXPECTED_NAMES:
        return Danger.EXPECTED
    if root in _RUNNING_MODULES or any(full == prefix or full.startswith(f"{prefix}.") for prefix in _RUNNING_PREFIXES):
        return Danger.RUNS_CODE
    # A dotted name walks through attributes: `torch.os.system` reaches `os` by way of torch.
    if any(part in _RUNNING_MODULES - {"io", "types", "code", "operator", "select", "trace", "test", "http"} for part in named.name.split(".")[:-1]):
        return Danger.RUNS_CODE
    if root in _EXPECTED_MODULES and "." not in named.name.strip("."):
        return Danger.EXPECTED
    return Danger.EXPECTED if root in _EXPECTED_MODULES and named.name[:1].isupper() else Danger.FOREIGN
