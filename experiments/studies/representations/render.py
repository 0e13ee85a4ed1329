"""What a released table is worth by its cells."""

from experiments.core.cells import Result
from experiments.core.markdown import n_seeds, section, table

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """One table: size, NCP, AUC and F1 of every representation."""
    text = f"""Adult whole, k = {found["k"]}, the journey with traps; seven tenths of the rows are
        released as CSV and read back with `read_released`, and a model fitted to that is tested on
        the others, raw. A model takes the middle of an interval, and of a set the share of each
        label that is possible; bounds are of numbers, with sets beside them. Size is over that of
        the raw CSV. Means over {n_seeds(found["seeds"])}."""
    raw = found["raw"]
    rows = [["raw", "1.00", "0", f"{raw['auc']:.3f}", f"{raw['f1']:.3f}"]]
    rows += [
        [r["form"], f"{r['size']:.2f}", f"{r['ncp']:.3f}", f"{r['auc']:.3f}", f"{r['f1']:.3f}"]
        for r in found["rows"]
    ]
    head = ["representation", "size", "NCP", "AUC", "F1"]
    return section("What cells are worth", found, text, table(head, rows))


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence."""
    default = next(r for r in found["rows"] if r["form"] == "interval")
    model = next(r for r in found["rows"] if r["form"] == "model")
    return [
        f"""**Cells:** Adult at k = {found["k"]} is {default["size"]:.2f} times its raw size as CSV
        in the default representation; a model on `--as model` has an AUC of {model["auc"]:.3f},
        on intervals {default["auc"]:.3f}, on the raw rows {found["raw"]["auc"]:.3f}."""
    ]
