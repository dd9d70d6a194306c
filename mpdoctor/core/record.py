"""`dataclass` for the vocabulary: the standard library's, without the code that it generates.

The standard decorator compiles six methods per class, about a millisecond each time the program starts; the vocabulary has dozens of classes and
`mpdoctor gpu` and `check` take a tenth of a second in all. Here the methods are shared. Fields, `fields`, `replace`, `asdict`, patterns, equality,
hashing, copying and pickling are the standard ones; only `slots=True` has no effect. Classes that are made by the million keep the standard one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, repr=True):  # noqa: ANN001, ANN201 - typed as the standard one
        """See `dataclasses.dataclass`."""

        def equip(cls):  # noqa: ANN001, ANN202
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
            cls.__init__ = _init(cls)
            if repr:
                cls.__repr__ = _repr
            if eq:
                cls.__eq__ = _eq
                cls.__hash__ = _hash if frozen else None
            if frozen:
                cls.__setattr__ = _refuse_to_set
                cls.__delattr__ = _refuse_to_delete
            return cls

        return equip if cls is None else equip(cls)

    def _init(cls):  # noqa: ANN001, ANN202
        """The constructor of `cls`: defaults, then what is given; as strict about names as a generated one."""
        members = dataclasses.fields(cls)
        names = tuple(member.name for member in members)
        positional = tuple(member.name for member in members if not member.kw_only)
        defaults = {member.name: member.default for member in members if member.default is not dataclasses.MISSING}
        factories = {member.name: member.default_factory for member in members if member.default_factory is not dataclasses.MISSING}
        required = frozenset(names).difference(defaults, factories)
        after = getattr(cls, "__post_init__", None)
        what = f"{cls.__name__}.__init__()"

        def __init__(self, *args, **given):  # noqa: ANN001, ANN002, ANN003, ANN202
            if args:
                if len(args) > len(positional):
                    raise TypeError(f"{what} takes {len(positional) + 1} positional arguments but {len(args) + 1} were given")
                for name, value in zip(positional, args, strict=False):
                    if name in given:
                        raise TypeError(f"{what} got multiple values for argument {name!r}")
                    given[name] = value
            if not required <= given.keys():
                raise TypeError(f"{what} missing required arguments: {', '.join(name for name in names if name in required - given.keys())}")
            values = self.__dict__
            values.update(defaults)
            for name, factory in factories.items():
                if name not in given:
                    values[name] = factory()
            values.update(given)
            if len(values) != len(names):
                raise TypeError(f"{what} got an unexpected keyword argument {next(name for name in given if name not in names)!r}")
            if after is not None:
                after(self)

        return __init__

    def _repr(self):  # noqa: ANN001, ANN202
        shown = (f"{member.name}={getattr(self, member.name)!r}" for member in dataclasses.fields(self) if member.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _eq(self, other):  # noqa: ANN001, ANN202
        return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented

    def _hash(self):  # noqa: ANN001, ANN202
        return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))

    def _refuse_to_set(self, name, value):  # noqa: ANN001, ANN202
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_to_delete(self, name):  # noqa: ANN001, ANN202
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
