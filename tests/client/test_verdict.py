"""A verdict as a file."""

import pytest

from verix_anon.client.owner_files import parse_verdict
from verix_anon.errors import TableError


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "the verdict: format must be"),
        ("not JSON", "the verdict: not JSON"),
        ("[1]", "the verdict: not a JSON object"),
    ],
)
def test_a_file_that_is_no_verdict(text: str, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        parse_verdict(text)
