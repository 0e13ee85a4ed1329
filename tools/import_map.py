"""The picture in docs/architecture.md: packages and who imports whom, from the real imports.

    python -m tools.import_map      writes docs/images/architecture.svg

`tests/test_architecture.py` draws it again and wants the same file, so the picture cannot go stale.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "verix_anon"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

# Where each package stands, in columns and rows, and what it holds.
PLACES = {
    "cli": (1.5, 0, "the commands"),
    "conform": (1.5, 1, "the conformance kit"),
    "datasets": (1.5, 3, "a table to try it on"),
    "checker": (0.0, 1, "a page that checks"),
    "desk": (0.0, 2, "the owner's pages"),
    "adversaries": (2.0, 2, "providers that misbehave"),
    "service": (3.0, 2, "the provider behind HTTP"),
    "client": (0.5, 3, "the owner, with all secrets"),
    "provider": (2.5, 3, "the engine, local and on Spark"),
    "files": (0.9, 4, "reads and writes bytes"),
    "kernels": (2.1, 4, "compiled loops"),
    "protocol": (1.5, 5, "what both parties agree on"),
}
OWNER, PROVIDER, BOTH = "owner", "provider", "both"
SIDE = {
    "client": OWNER,
    "desk": OWNER,
    "provider": PROVIDER,
    "service": PROVIDER,
    "adversaries": PROVIDER,
}
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 200, 54, 28, 56, 20


def imported(path: Path) -> Iterator[str]:
    """Yield the full dotted names that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(path: Path) -> str:
    """Return the package, or the single module, that a source file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def edges() -> dict[str, set[str]]:
    """Return which packages each package imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        own = package_of(path)
        if own.startswith("__"):
            continue
        names = {name.split(".")[1] for name in imported(path) if name.startswith("verix_anon.")}
        found.setdefault(own, set()).update(names - {own, "__version__"})
    return found


def foundations() -> list[str]:
    """Return the single modules at the top level, which any package may use."""
    stems = (path.stem for path in PACKAGE.glob("*.py"))
    return sorted(stem for stem in stems if stem not in ("__init__", "__main__", *PLACES))


def reduced(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph without the arrows that follow from others."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for each in graph[todo.pop()] - seen:
                seen.add(each)
                todo.append(each)
        return seen

    return {
        own: {name for name in below if not any(name in reach(o) for o in below - {name})}
        for own, below in graph.items()
    }


def drawn() -> str:
    """Return the picture as SVG.

    Raises:
        ValueError: A package has no place, or an arrow does not point down.
    """
    low = foundations()
    whole = {n: below - set(low) for n, below in edges().items() if n not in low}
    if whole.keys() != PLACES.keys():
        raise ValueError(f"PLACES does not fit the packages: {whole.keys() ^ PLACES.keys()}")
    arrows = [(own, to) for own, below in reduced(whole).items() for to in sorted(below)]
    for own, to in arrows:
        if PLACES[own][1] >= PLACES[to][1]:
            raise ValueError(f"{own} imports {to}, which does not stand below it")
    at = {
        name: (int(MARGIN + x * (WIDTH + GAP_X)), MARGIN + y * (HEIGHT + GAP_Y))
        for name, (x, y, _) in PLACES.items()
    }
    total = max(x for x, _ in at.values()) + WIDTH - MARGIN
    bottom = max(y for _, y in at.values()) + HEIGHT + GAP_Y
    middle = MARGIN + total // 2
    lines = [_arrow(at[own], at[to]) for own, to in arrows]
    boxes = [_box(*at[n], n, holds, SIDE.get(n, BOTH)) for n, (_, _, holds) in PLACES.items()]
    boxes.append(
        f'<rect x="{MARGIN}" y="{bottom}" width="{total}" height="{HEIGHT}" rx="8" class="both"/>'
        f'<text x="{middle}" y="{bottom + 23}" class="name">single modules, for any package</text>'
        f'<text x="{middle}" y="{bottom + 42}">{", ".join(low)}</text>'
    )
    return TEMPLATE.format(
        width=total + 2 * MARGIN,
        height=bottom + HEIGHT + MARGIN,
        body="\n".join([*lines, *boxes]),
    )


def _box(x: int, y: int, name: str, holds: str, side: str) -> str:
    middle = x + WIDTH // 2
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8" class="{side}"/>'
        f'<text x="{middle}" y="{y + 23}" class="name">{name}</text>'
        f'<text x="{middle}" y="{y + 42}">{holds}</text>'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x0, y0 = start[0] + WIDTH // 2, start[1] + HEIGHT
    x1, y1 = end[0] + WIDTH // 2, end[1] - 4
    return f'<path d="M{x0} {y0} L{x1} {y1}"/>'


TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" \
aria-label="The packages of verix-anon; an arrow means that the upper one imports the lower one">
<style>
svg {{ font-family: system-ui, sans-serif; background: #fff; }}
text {{ text-anchor: middle; font-size: 12px; fill: #333; }}
.name {{ font-size: 15px; font-weight: 600; fill: #111; }}
rect {{ stroke: #555; stroke-width: 1; }}
.owner {{ fill: #dbeafe; }} .provider {{ fill: #fef3c7; }} .both {{ fill: #f1f5f9; }}
path {{ fill: none; stroke: #64748b; stroke-width: 1.4; marker-end: url(#tip); }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0 L8 4 L0 8 z" style="fill:#64748b;stroke:none"/></marker></defs>
{body}
</svg>
"""


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
