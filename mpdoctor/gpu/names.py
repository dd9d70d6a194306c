"""GPU names as people type them, matched to the table. `a10g` is not `a10`, and a name that could be two cards is an error."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache

from mpdoctor.core.errors import UsageError
from mpdoctor.core.record import dataclass
from mpdoctor.gpu.table import Card, cards

_NOISE = re.compile(
    r"\b(nvidia|geforce|tesla|quadro|amd|ati|instinct|radeon|intel|iris|tm|graphics|gpu|gpus|laptop|mobile|max ?q|generation|edition|workstation|"
    r"server|sff|sxm\d?|pcie|nvl\d*|oam|hbm\d\w*|gddr\d\w*|ddr\d\w*|data ?center|tensor core|accelerator|mig \d+[gc]\S*.*|\d+q|\d+ ?gi?b)\b"
)
_COUNT = re.compile(r"^\d{1,2}\s*[x*]\s*(?=\D)")
_MEMORY = re.compile(r"\b(\d+) ?gi?b?\b")
_LEADING = ("rtx", "gtx", "rx", "arc", "pro", "max", "flex", "jetson", "agx", "apple")
"""Words that people leave out at the start: `4090`, `7900 xtx`, `a770`, `orin nx`."""
_TRAILING = ("blackwell",)


@dataclass(frozen=True, slots=True)
class Match:
    """A card of the table, and the memory size that the name gave (GiB), if it gave one that is on sale."""

    card: Card
    memory_gib: int | None


def match(text: str) -> Match:
    """The card that `text` names. Raises UsageError for none (with the nearest names) and for more than one."""
    found = find(text)
    if not found:
        raise UsageError(f"no GPU is called {text!r}", _suggestion(text))
    if len(found) > 1:
        choices = ", ".join(f"{card.name} ({card.generation})" for card in found)
        raise UsageError(f"{text!r} can be several GPUs: {choices}", "give the whole name, or the compute capability")
    card = found[0]
    sizes = {int(size) for size in _MEMORY.findall(_words(text))} & set(card.memory_gib)
    return Match(card, sizes.pop() if len(sizes) == 1 else card.memory_gib[0] if len(card.memory_gib) == 1 else None)


def find(text: str) -> tuple[Card, ...]:
    """All cards that `text` can mean: none, one, or several."""
    wanted = _key(_COUNT.sub("", _words(text)))
    if not wanted:
        return ()
    exact = [card for key, card in _keys() if key == wanted]
    if exact:
        return tuple(_with_successor(exact, text))
    return tuple(dict.fromkeys(card for key, card in _aliases() if key == wanted))


def _with_successor(exact: list[Card], text: str) -> list[Card]:
    """`rtx 6000` without "Quadro" is what people call the Ada card, too: then both are meant."""
    if "quadro" in text.lower():
        return exact
    extra = [card for found in exact if found.name.startswith("Quadro") for key, card in _keys() if key == f"{_key(_words(found.name))}ada"]
    return exact + extra


def _words(text: str) -> str:
    """Lower case, marks as spaces, one space between words."""
    return " ".join(re.sub(r"\((r|tm)\)|[®™]", " ", text.lower()).replace("-", " ").replace("_", " ").replace("/", " ").replace(",", " ").split())


def _key(words: str) -> str:
    """What is left of a name when makers, form factors and memory sizes are gone, without spaces."""
    return re.sub(r"\W+", "", _NOISE.sub(" ", words))


@cache
def _keys() -> tuple[tuple[str, Card], ...]:
    return tuple((_key(_words(card.name)), card) for card in cards())


@cache
def _aliases() -> tuple[tuple[str, Card], ...]:
    """Shorter names of each card."""
    found = []
    for card in cards():
        words = _NOISE.sub(" ", _words(card.name)).split()
        starts = [words]
        while len(starts[-1]) > 1 and starts[-1][0] in _LEADING:
            starts.append(starts[-1][1:])
        for start in starts:
            found.append(("".join(start), card))
            if len(start) > 1 and start[-1] in _TRAILING:
                found.append(("".join(start[:-1]), card))
    return tuple(found)


def _suggestion(text: str) -> str:
    wanted = _key(_words(text)) or text.lower()
    by_key = {key: card.name for key, card in (*_aliases(), *_keys())}
    near = dict.fromkeys(by_key[key] for key in get_close_matches(wanted, list(by_key), n=6, cutoff=0.6))
    if near:
        return f"did you mean {', '.join(list(near)[:3])}? A compute capability (8.6) or an LLVM target (gfx942) works too"
    return "give a name (v100, 'RTX 4090', MI300X), a compute capability (8.6), an LLVM target (gfx942), the UUID of a GPU in this machine, or auto"
