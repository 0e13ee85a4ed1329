"""The engine gives every delivery, and refuses each bad submission for its own reason."""

import json
from pathlib import Path

import pytest

from support import assert_same
from tools.kit import independent
from tools.kit.provider_cases import ANSWERED, CONTRACTS, DAMAGED
from tools.kit.provider_cases import submission as submission_of
from verix_anon.conform.kit import Kit, chosen
from verix_anon.errors import Error
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.provider.local import LocalProvider

REASONS = {
    "contract-spaces": "not canonical JSON",
    "contract-key-order": "not canonical JSON",
    "contract-key-twice": "a field occurs twice",
    "contract-fraction": "k must be a whole number, not 2.0",
    "contract-surrogate": "not valid Unicode text",
    "contract-unknown-field": "unknown field 'more'",
    "contract-missing-field": "field 'max_depth' is missing",
    "contract-format": "format must be",
    "contract-id": "submission_id must be 32 lower-case",
    "contract-id-short": "submission_id must be 32 lower-case",
    "contract-k": "k must be a whole number from 2",
    "contract-min-leaf": "min_leaf must be a whole number from 4",
    "contract-max-depth": "max_depth must be a whole number from 1 to 50",
    "contract-no-depth": "max_depth must be a whole number from 1 to 50",
    "contract-true": "max_depth must be a whole number, not True",
    "contract-rule": "rule must be one of",
    "contract-commitment": "commitment must be one of",
    "contract-reserved-name": "'leaf' is reserved",
    "contract-reserved-target": "'leaf' is reserved",
    "contract-name-twice": "'a' occurs twice",
    "contract-role": "role must be one of",
    "contract-unit": "field 'unit' is missing",
    "contract-unit-other": "unit must be one of",
    "contract-unit-more": "unknown field 'unit'",
    "contract-label-type": "categories must be a list of text",
    "contract-label-twice": "names a category twice",
    "contract-three-classes": "must have two classes",
    "contract-three-positions": "must have two classes",
    "contract-no-quasi": "at least one quasi-identifier",
    "contract-no-target": "the contract has 0 targets",
    "contract-two-targets": "the contract has 2 targets",
    "contract-half-coded": "or none is",
    "contract-clear-target": "or none is",
    "contract-paper-coded": "needs values in clear",
    "contract-paper-name": "cannot represent",
    "contract-paper-colon": "cannot represent",
    "contract-paper-comma": "cannot represent",
    "contract-spread-target": "has no target",
    "contract-no-weight": "a weight for every quasi-identifier",
    "contract-weight-more": "exactly one target and no weights",
    "contract-weight": "weight must be a whole number",
    "contract-weight-by-one": "weight must be a whole number",
    "contract-no-weight-at-all": "weight must be a whole number",
    "contract-size": "size must be a whole number",
    "header-missing": "submission.json is missing",
    "contract-missing": "contract.json is missing",
    "records-missing": "records.parquet is missing",
    "header-format": "format must be",
    "header-unknown-field": "unknown field 'more'",
    "header-field-twice": "a field occurs twice",
    "header-fraction": "rows must be a whole number",
    "header-long": "larger than 65536 bytes",
    "header-rows": "24 rows, more than 23",
    "digest-contract": "contract.json is not the contract",
    "digest-submission": "its records are not those of the digest",
    "digest-contract-file": "contract.json differs from the SHA-256",
    "digest-records-file": "records.parquet differs from the SHA-256",
    "records-truncated": "does not end as one",
    "records-flipped": "its records are not those of the digest",
    "records-encoding": "encoding 7",
    "row-missing": "23 rows, and not the 24",
    "row-twice": "row 5 is missing, and another occurs twice",
    "row-beyond": "a row is not one of 0 to 23",
    "row-negative": "a row is not one of 0 to 23",
    "value-missing": "has missing values",
    "value-nan": "not finite",
    "value-infinite": "not finite",
    "value-beyond": "a position outside its 5 values",
    "value-negative": "a position outside",
    "value-target": "other than 0 and 1",
    "value-target-in-parts": "256 not in range",
    "column-missing": "column 'b' is missing",
    "column-more": "column 'c' does not belong there",
    "column-order": "not in the agreed order",
    "column-type": "type float, not double",
    "cluster-types-in-one-file": "type binary",
    "tracker-short": r"fixed_size_binary\[31\]",
    "tracker-short-in-parts": "a tracker does not have 32 bytes",
    "parts-none": "a folder without a Parquet file",
    "parts-more": "'notes.txt', which is not a Parquet file",
    "parts-not-ascii": "a part's name has ASCII letters",
    "parts-folder": "'older', which is not a Parquet file",
    "parts-digest": "records.parquet differs from the SHA-256",
    "too-few-records": "needs at least min_leaf = 25 records",
    "too-few-by-far": "needs at least min_leaf = 2,147,483,647 records",
}


def test_every_reason_is_known() -> None:
    assert REASONS.keys() == (CONTRACTS | DAMAGED).keys()


def test_each_bad_submission_is_refused_for_its_own_reason(small_kit: Kit) -> None:
    for case in chosen(small_kit.cases, list(REASONS)):
        with pytest.raises(Error, match=REASONS[case.id]):
            read_submission(small_kit.path(case, "submission"))


def test_the_second_implementation_refuses_the_same_contracts() -> None:
    for row in CONTRACTS.values():
        contract = submission_of(row).contract
        with pytest.raises(ValueError, match=r"\w"):
            independent.read_contract(contract)


@pytest.mark.parametrize("name", ANSWERED)
def test_the_engine_gives_every_delivery(small_kit: Kit, name: str) -> None:
    (case,) = chosen(small_kit.cases, [name])
    submission = read_submission(small_kit.path(case, "submission"))
    made = submission_of(ANSWERED[name])
    expected = independent.anonymize(made.contract, made.trackers, made.columns)
    assert_same(LocalProvider().anonymize(submission), expected)
    n_rows = submission.records.n_rows
    written = read_delivery(small_kit.path(case, "delivery"), submission.contract, n_rows=n_rows)
    assert_same(written.delivery, expected)
    assert not written.damaged


@pytest.mark.parametrize("name", ["rounding", "rounding-order", "spread-binary32"])
def test_scores_are_of_binary64_and_of_the_order_that_is_given(name: str) -> None:
    """As fractions, in another order or in binary32 the first column would be split."""
    made = submission_of(ANSWERED[name])
    nodes = independent.anonymize(made.contract, made.trackers, made.columns).nodes
    assert nodes[0][0] == 1


def test_names_are_not_normalised(small_kit: Kit) -> None:
    (case,) = chosen(small_kit.cases, ["names"])
    path: Path = small_kit.path(case, "submission") / "contract.json"
    names = [column["name"] for column in json.loads(path.read_bytes())["columns"]]
    assert "\ufb01 \u212b" in names
