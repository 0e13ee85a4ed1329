"""What is in a submission or delivery, as plain facts to show; never a secret."""

import os

from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.files.deliveries import read_header
from verix_anon.files.store import Folder, open_folder
from verix_anon.files.submissions import read_submission
from verix_anon.protocol.contract import Column

__all__ = ["inspect_folder"]

Facts = dict[str, object]


def inspect_folder(path: str | os.PathLike[str]) -> Facts:
    """Facts about the submission or delivery in a folder."""
    folder = open_folder(path, TableError)
    if folder.has("delivery.json"):
        return _delivery(folder.failing(MalformedDeliveryError))
    if folder.has("submission.json"):
        return _submission(folder)
    if folder.is_folder("submission"):
        return _submission(folder.folder("submission"))
    raise TableError(
        f"{folder.path} is neither a delivery (delivery.json) nor a submission (submission.json)"
    )


def _submission(folder: Folder) -> Facts:
    submission = read_submission(folder.path)
    contract, records = submission.contract, submission.records
    return {
        "kind": "submission",
        "submission_id": contract.submission_id,
        "contract": contract.digest.hex(),
        "submission": submission.digest().hex(),
        "rows": records.n_rows,
        "k": contract.k,
        "min_leaf": contract.min_leaf,
        "max_depth": contract.max_depth,
        "commitment": contract.commitment.value,
        "columns": {column.name: _describe(column) for column in contract.columns},
        "bytes": _sizes(
            folder, ["submission.json", "contract.json", *folder.parts("records.parquet")]
        ),
    }


def _delivery(folder: Folder) -> Facts:
    header = read_header(folder.path)
    names = ["delivery.json", "leaves.parquet", "nodes.parquet", *folder.parts("records.parquet")]
    return {
        "kind": "delivery",
        "root": header.root.hex(),
        "contract": header.contract.hex(),
        "submission": header.submission.hex(),
        "rows": header.rows,
        "leaves": header.leaves,
        "nodes": header.nodes,
        "engine": header.engine,
        "version": header.version,
        "seconds": header.seconds,
        "bytes": _sizes(folder, names),
    }


def _describe(column: Column) -> str:
    if column.categories is not None:
        detail = f", {len(column.categories):,} categories"
    else:
        detail = f" in {column.unit}" if column.unit is not None else ""
    return f"{column.role}, {column.kind}{detail}"


def _sizes(folder: Folder, names: list[str]) -> Facts:
    sizes = {name: folder.size(name) for name in names}
    return {**sizes, "all": sum(sizes.values())}
