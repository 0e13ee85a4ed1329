"""The names of all files and folders of a job, whichever command, page or program uses them.

    roles.toml            what each column is (init), and how privacy is asked for
    overview.json, sample.arrow   what the desk shows of the columns, and some rows (init)
    *.hierarchy           groups of a column's values (desk), which the roles file names
    explore.json          what settings would cost (explore)
    submission/           what is sent (prepare): submission.json, contract.json, records.parquet
    manifest.verix        the owner's secrets (prepare)
    delivery/             what came back: delivery.json, leaves.parquet, nodes.parquet,
                          records.parquet, and receipt.dsse.json if the provider signed
    verdict.json, .html   what was found about it (verify), and the report
    preview.json          what a release would hold (release --preview)
    released.*, sheet.json   the table to publish, and its privacy sheet (release)
    audit.jsonl           what was done, line by line

The names in a submission and a delivery are part of the format (spec §8). A receipt and a signed
verdict name files too, by `protocol.statements`; a test holds these names to the ones here.
"""

ROLES = "roles.toml"
OVERVIEW = "overview.json"
SAMPLE = "sample.arrow"
HIERARCHY = ".hierarchy"
"""The ending of a file with a hierarchy."""
EXPLORED = "explore.json"
MANIFEST = "manifest.verix"
VERDICT = "verdict.json"
REPORT = "verdict.html"
PREVIEW = "preview.json"
RELEASED = "released"
"""The name of the table to publish, without its ending."""
SHEET = "sheet.json"
AUDIT_LOG = "audit.jsonl"

SUBMISSION = "submission"
SUBMISSION_HEADER = "submission.json"
CONTRACT = "contract.json"

DELIVERY = "delivery"
DELIVERY_HEADER = "delivery.json"
LEAVES = "leaves.parquet"
NODES = "nodes.parquet"
RECEIPT_FILE = "receipt.dsse.json"
"""The provider's receipt, where there is one."""

RECORDS = "records.parquet"
"""Of a submission and of a delivery; a file, or a folder of parts."""
