"""RemoteProvider: what it is given, what it shows, and that it is a provider."""

from pathlib import Path
from typing import Any

import pytest

from client.remote import clocks
from client.remote.scripted import TOKEN, Scripted
from files import samples
from verix_anon import RemoteOptions, RemoteProvider
from verix_anon.client.remote import Submitted
from verix_anon.errors import MalformedDeliveryError, ProviderError, TableError
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.providers import FolderProvider


@pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.1:80", "http://[::2]/"])
def test_no_token_goes_unencrypted_to_others(url: str) -> None:
    with pytest.raises(ProviderError, match="unencrypted"):
        RemoteProvider(url, TOKEN)
    RemoteProvider(url, TOKEN, options=RemoteOptions(insecure_http=True))


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://h", "https://", "https://u:pw@h", "https://h?q", "https://h#f", 3]
)
def test_an_address_that_is_none(url: Any) -> None:
    with pytest.raises(ProviderError, match="must") as caught:
        RemoteProvider(url, TOKEN)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ü", "x" * 5000, None, 3])
def test_a_token_that_is_none(token: Any) -> None:
    with pytest.raises(ProviderError, match="printable ASCII"):
        RemoteProvider("https://example.org", token)


def test_the_token_is_not_shown() -> None:
    assert TOKEN not in repr(RemoteProvider("https://example.org", TOKEN))
    provider = RemoteProvider("https://example.org", TOKEN)
    assert TOKEN not in repr(provider._connect())


def test_options_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="seconds, 0 or more"):
        RemoteOptions(patience=float("nan"))
    with pytest.raises(TableError, match="options must be RemoteOptions"):
        RemoteProvider("https://h", TOKEN, options=3)  # type: ignore[arg-type]
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for file in (empty, tmp_path / "missing.pem"):
        with pytest.raises(TableError, match="holds no certificates"):
            RemoteProvider("https://h", TOKEN, options=RemoteOptions(ca_file=file))


def test_it_is_a_provider_in_memory_too(service: Scripted, clock: clocks.Clock) -> None:
    delivery = RemoteProvider(service.url, TOKEN).anonymize(samples.sent())
    assert delivery.header == samples.delivered().header


def test_it_goes_from_folder_to_folder(
    service: Scripted, clock: clocks.Clock, tmp_path: Path
) -> None:
    write_submission(samples.sent(), tmp_path / "submission")
    provider: FolderProvider = RemoteProvider(service.url, TOKEN)
    header = provider.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")
    assert isinstance(header, Submitted)
    assert (header.root, header.kept) == (samples.delivered().header.root, False)


def test_a_malformed_delivery_is_said_to_be_one(service: Scripted, clock: clocks.Clock) -> None:
    service.delivery["nodes.parquet"] = b"PAR1 nonsense PAR1"
    with pytest.raises(MalformedDeliveryError):
        RemoteProvider(service.url, TOKEN).anonymize(samples.sent())
