"""Tokens: kept as digests, ended by time or by word."""

import pytest
from sqlalchemy import text

from verix_anon.errors import ProviderError
from verix_anon.service import tenants
from verix_anon.service.database import Database
from verix_anon.service.tenants import TokenRole


def test_a_token_finds_its_tenant_and_is_not_kept(database: Database) -> None:
    token = tenants.create_token(database, "clinic", TokenRole.TENANT)
    assert token.startswith("vrx_")
    assert len(token) == 4 + 43
    found = tenants.find(database, token)
    assert found is not None
    assert (found.tenant, found.role) == ("clinic", TokenRole.TENANT)
    with database.read() as session:
        for table in ("tokens", "tenants"):
            rows = str(session.execute(text(f"SELECT * FROM {table}")).all())
            assert token not in rows
            assert token[4:] not in rows
    assert tenants.find(database, token[:-1]) is None
    assert tenants.find(database, "") is None
    assert tenants.find(database, "\ud800\0") is None


def test_a_tenant_has_many_tokens_and_one_may_end(database: Database) -> None:
    kept, ended = (tenants.create_token(database, "clinic", TokenRole.TENANT) for _ in range(2))
    first, second = tenants.tokens(database)
    known = tenants.find(database, ended)
    assert known is not None
    assert known.id in (first.id, second.id)
    assert tenants.revoke(database, known.id)
    assert not tenants.revoke(database, known.id)
    assert not tenants.revoke(database, "none")
    assert tenants.find(database, ended) is None
    assert tenants.find(database, kept) is not None


def test_a_token_expires_in_database_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenants.find(database, tenants.create_token(database, "a", TokenRole.TENANT, 60))
    assert not tenants.find(database, tenants.create_token(database, "a", TokenRole.TENANT, -1))


def test_an_operators_token_has_no_tenant(database: Database) -> None:
    found = tenants.find(database, tenants.create_token(database, None, TokenRole.OPERATOR))
    assert found is not None
    assert (found.role, found.tenant) == (TokenRole.OPERATOR, None)
    for tenant, role in ((None, TokenRole.TENANT), ("clinic", TokenRole.OPERATOR)):
        with pytest.raises(ProviderError, match="either"):
            tenants.create_token(database, tenant, role)


@pytest.mark.parametrize("name", ["", "a" * 65, "a\nb"])
def test_a_tenants_name_is_short_and_printable(database: Database, name: str) -> None:
    with pytest.raises(ProviderError, match="name"):
        tenants.create_token(database, name, TokenRole.TENANT)
