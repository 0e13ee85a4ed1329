"""Where results go: asked before long work, and written whole or not at all."""

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["check_outputs", "write_data", "write_roles", "write_text"]


def check_outputs(
    outputs: Sequence[str | Path | None], inputs: Iterable[object], *, overwrite: bool
) -> None:
    """Raise unless every output can be written, and replaces no input and no other output."""
    from verix_anon.files.aside import check_apart, check_free

    for i, output in enumerate(outputs):
        if output is not None:
            check_apart(output, [*inputs, *outputs[:i], *outputs[i + 1 :]])
            check_free(output, overwrite=overwrite)


def write_text(text: str, out: Path, *, overwrite: bool) -> None:
    """Write text for its owner alone, which appears under its name when it is complete."""
    write_data(text.encode(), out, overwrite=overwrite)


def write_roles(text: str, out: Path, *, overwrite: bool) -> None:
    """The same, but what a page did not show is not replaced, if a page started this."""
    from verix_anon.files.versions import replace_seen

    if not overwrite or not replace_seen(out, text):
        write_text(text, out, overwrite=overwrite)


def write_data(data: bytes, out: Path, *, overwrite: bool) -> None:
    """The same with bytes."""
    from verix_anon.files.aside import write_bytes, written_aside

    with written_aside(out, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, data)
