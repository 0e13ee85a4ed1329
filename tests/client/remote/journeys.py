"""A submission sent to a scripted service, and faults that it may meet."""

from pathlib import Path
from typing import Any

import pytest

from client.remote.scripted import TOKEN, Fault, Handler, Scripted, files_of
from verix_anon import RemoteOptions, RemoteProvider
from verix_anon.errors import ProviderError


class Client:
    """The submission, sent to the scripted service."""

    def __init__(self, service: Scripted, folders: Path, out: Path) -> None:
        self.service, self.folders, self.out = service, folders, out

    def run(self, token: str = TOKEN, **options: Any) -> None:
        chosen = RemoteOptions(seed=1, **options)
        provider = RemoteProvider(self.service.url, token, options=chosen)
        provider.anonymize_folder(self.folders / "submission", self.out)

    def fails(self, match: str, error: type[Exception] = ProviderError, **options: Any) -> str:
        """What it says; nothing is left of the delivery."""
        with pytest.raises(error, match=match) as caught:
            self.run(**options)
        assert not self.out.exists()
        assert list(self.out.parent.iterdir()) == []
        said = str(caught.value)
        assert said.isprintable()
        assert len(said) < 600
        assert TOKEN not in said
        return said

    def is_whole(self) -> bool:
        uploaded = {name: bytes(data) for name, data in self.service.uploads.items()}
        is_sent = uploaded == files_of(self.folders / "submission")
        return is_sent and files_of(self.out) == files_of(self.folders / "delivery")


def busy(status: int, code: str, **headers: str) -> Fault:
    return lambda handler: handler.problem(status, code, "later", **headers)


def cut_after(n_bytes: int) -> Fault:
    """Take so many bytes of an upload, and end the connection."""

    def fault(handler: Handler) -> None:
        data = handler.rfile.read(n_bytes)
        handler.script.uploads[handler.file()] += data
        handler.cut()

    return fault


def break_off(n_bytes: int) -> Fault:
    """Send so many bytes of a delivery, and end the connection."""

    def fault(handler: Handler) -> None:
        data = handler.script.delivery[handler.file()]
        handler.answer(200, data[:n_bytes], Content_Length=str(len(data)))
        handler.cut()

    return fault


def stated(offset: int, length: int | None = None) -> Fault:
    """State an offset, and a length, whatever is true."""

    def fault(handler: Handler) -> None:
        handler.drain()
        size = handler.stated()["size"] if length is None else length
        handler.answer(200, Upload_Offset=str(offset), Upload_Length=str(size))

    return fault
