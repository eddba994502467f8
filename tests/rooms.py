"""The rooms of the package: which lie above which, what each imports, and a picture of both."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sklearn_ical"
SOURCES = sorted((ROOT / PACKAGE).rglob("*.py"))

# Lowest first. A file may import from lower rows, and from its own package.
ROWS = [
    {"_names", "_typing", "exceptions"},
    {"_array", "_random"},
    {"_labels", "_validation"},
    {"_fit_params"},
    {"dependence", "samples"},
    {"samplers"},
    {"pool"},
    {"selection"},
    {"objectives"},
    {"strategies"},
    {"learner", "simulation"},
    {"adapters", "plotting", "testing"},
    {"cli"},
]
ROW_OF = {layer: i for i, row in enumerate(ROWS) for layer in row}

# One box of the picture stands for the single files that most others import.
SHARED = "shared files"
SHARED_FILES = sorted(set().union(*ROWS[:4]))
# The first and the last column of each room in the picture, and what it is for. Arrows are
# vertical: a room shares a column with each room that an arrow from it points to.
PLAN = {
    "cli": (0, 0, "the command"),
    "plotting": (0, 0, "learning curves"),
    "testing": (2, 2, "public checks"),
    "simulation": (0, 0, "the loop as plain data"),
    "learner": (1, 1, "the loop as an estimator"),
    "strategies": (0, 2, "what is offered"),
    "objectives": (0, 2, "what is maximized"),
    "selection": (0, 2, "how a batch is picked"),
    "pool": (0, 2, "what one call sees"),
    "samplers": (0, 1, "from a model to draws, means and embeddings"),
    "samples": (0, 1, "predictions of all draws"),
    "dependence": (2, 2, "kernels, HSIC, entropies"),
    SHARED: (0, 2, " · ".join(SHARED_FILES)),
}
COLUMN, FLOOR, GAP, HEIGHT = 230, 76, 20, 46  # pixels

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"
  height="{height}" font-family="sans-serif" font-size="13" text-anchor="middle">
<title>The rooms of sklearn_ical</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"
  orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
<rect width="{width}" height="{height}" fill="white"/>
"""
BOX = """\
<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="#888"/>
<text x="{middle}" y="{upper}" font-weight="bold">{name}</text>
<text x="{middle}" y="{lower}" font-size="12" fill="#333">{phrase}</text>
"""
ARROW = '<path d="M{x} {start}V{end}" stroke="#555" marker-end="url(#tip)"/>\n'


def room_of(layer: str) -> str:
    """Return the room that a layer is drawn in."""
    return SHARED if layer in SHARED_FILES else layer


@cache
def imports() -> frozenset[tuple[str, str]]:
    """Return pairs of rooms, the first of which imports the second."""
    found = set()
    for path in SOURCES:
        layer = path.relative_to(ROOT / PACKAGE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and layer in ROW_OF:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                imported = {name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}.")}
                found |= {(room_of(layer), room_of(other)) for other in imported & set(ROW_OF)}
    return frozenset(pair for pair in found if len(set(pair)) == 2)


def arrows() -> list[tuple[str, str]]:
    """Return the imports that do not follow from others: of a > b > c and a > c, not the last."""
    pairs = imports()

    def reaches(start: str, end: str) -> bool:
        return (start, end) in pairs or any(reaches(b, end) for a, b in pairs if a == start)

    return sorted(
        (start, end)
        for start, end in pairs
        if not any(reaches(b, end) for a, b in pairs if a == start and b != end)
    )


def picture() -> str:
    """Return the picture as SVG."""
    floors = sorted({row_of(room) for room in rooms()}, reverse=True)
    top = {room: GAP + FLOOR * floors.index(row_of(room)) for room in rooms()}
    size = {"width": 3 * COLUMN + GAP, "height": FLOOR * len(floors) + GAP // 2}
    parts = [HEAD.format(**size), *(box(room, top[room]) for room in rooms())]
    for start, end in arrows():
        x = GAP // 2 + round(arrow_column(start, end) * COLUMN)
        parts.append(ARROW.format(x=x, start=top[start] + HEIGHT, end=top[end]))
    return "".join([*parts, "</svg>\n"])


def box(room: str, y: int) -> str:
    """Return the box of one room."""
    first, last, phrase = PLAN[room]
    x, width = GAP + first * COLUMN, (last - first + 1) * COLUMN - GAP
    shape = {"x": x, "y": y, "width": width, "height": HEIGHT}
    text = {"middle": x + width // 2, "upper": y + 19, "lower": y + 36}
    fill = "#eee" if room == SHARED else "#e6eff8"
    return BOX.format(**shape, **text, name=room, phrase=phrase, fill=fill)


def arrow_column(start: str, end: str) -> float:
    """Return where an arrow is drawn, in columns: in the middle of those that both rooms share."""
    return (max(PLAN[start][0], PLAN[end][0]) + min(PLAN[start][1], PLAN[end][1]) + 1) / 2


def rooms() -> list[str]:
    """Return the rooms of the picture; those of ROWS that there are."""
    return [room for room in PLAN if any(room in pair for pair in imports())]


def row_of(room: str) -> int:
    """Return the row of a room, the lowest for the shared files."""
    return 0 if room == SHARED else ROW_OF[room]
