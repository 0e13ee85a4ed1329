"""Who may use the service: tokens of 256 random bits. The database keeps only their SHA-256."""

import secrets
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import or_, select, update

from verix_anon.errors import ProviderError
from verix_anon.service.database import Database, TenantRow, TokenRow, database_time, now

PREFIX = "vrx_"
"""The prefix by which people and scanners recognize a leaked token"""
MAX_NAME = 64


class TokenRole(StrEnum):
    """What a token is for."""

    TENANT = "tenant"
    OPERATOR = "operator"


def create_token(
    database: Database, tenant: str | None, role: TokenRole, expires_in: float | None = None
) -> str:
    """Return a new token, which is shown only once; add the tenant if its name is new.

    `expires_in` is in seconds. An operator's token has no tenant.
    """
    if (tenant is None) is not (role is TokenRole.OPERATOR):
        raise ProviderError("a token is either a tenant's or the operator's")
    if tenant is not None and not (tenant.isprintable() and 0 < len(tenant) <= MAX_NAME):
        raise ProviderError(f"a tenant's name has 1 to {MAX_NAME} printable characters")
    token = PREFIX + secrets.token_urlsafe(32)
    with database.write() as session:
        at = database_time(session)
        if tenant is not None and session.get(TenantRow, tenant) is None:
            session.add(TenantRow(name=tenant, created=at))
            session.flush()
        session.add(
            TokenRow(
                id=secrets.token_hex(4),
                digest=_digest(token),
                role=role,
                tenant=tenant,
                created=at,
                expires=None if expires_in is None else at + expires_in,
            )
        )
    return token


def find(database: Database, token: str) -> TokenRow | None:
    """Return the row of a token; None if it is unknown, revoked or expired."""
    # The lookup is by digest, so the time that it takes tells nothing about any token.
    valid = (
        TokenRow.digest == _digest(token),
        TokenRow.revoked.is_(None),
        or_(TokenRow.expires.is_(None), TokenRow.expires > now()),
    )
    with database.read() as session:
        return session.scalars(select(TokenRow).where(*valid)).one_or_none()


def revoke(database: Database, token_id: str) -> bool:
    """Revoke a token by its id; return whether there was one that was not revoked yet."""
    ended = (
        update(TokenRow)
        .where(TokenRow.id == token_id, TokenRow.revoked.is_(None))
        .values(revoked=now())
        .returning(TokenRow.id)
    )
    with database.write() as session:
        return session.scalars(ended).one_or_none() is not None


def tokens(database: Database) -> tuple[TokenRow, ...]:
    """Return all tokens ever made, oldest first."""
    with database.read() as session:
        return tuple(session.scalars(select(TokenRow).order_by(TokenRow.created, TokenRow.id)))


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
