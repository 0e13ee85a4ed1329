"""The errors that verix-anon raises on purpose, in one tree.

Error:
├── ContractError            the contract is inconsistent
├── TableError               the table does not fit the contract
│   ├── MemoryShortError     there is not the memory to read it now
│   └── MixedUpError         the delivery says that it is for another submission
├── ProviderError            the provider could not be reached or refused
├── MalformedDeliveryError   the bytes are not a delivery
├── ReceiptError             signed bytes, or a key, are not what they must be
├── ProofError               a proof of inclusion does not hold
└── NotAcceptedError         release() was asked for a delivery that did not pass
    └── GateError            the release does not reach what was required of it

Each message is one sentence for the person who made the mistake. Any other exception that
escapes is a bug in verix-anon.

Examples:
    >>> verix_anon.read_table("nowhere.csv")
    Traceback (most recent call last):
    verix_anon.errors.TableError: ...
"""


class Error(Exception):
    """Base class of all errors below. Each argument is one reason."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.args))


class ContractError(Error):
    """The contract is inconsistent."""


class TableError(Error):
    """A table, or a file that should hold one, does not fit the contract."""


class MemoryShortError(TableError):
    """There is not enough memory to read a table now. The table itself may be fine."""


class MixedUpError(TableError):
    """The delivery says that it is for another submission, so it is not judged."""


class ProviderError(Error):
    """The provider could not be reached, or refused."""


class MalformedDeliveryError(Error):
    """The bytes are not a delivery."""


class ReceiptError(Error):
    """A receipt, a signed verdict or a key is not what it must be."""


class ProofError(Error):
    """A proof of inclusion does not hold, or is not the one that was asked for."""


class NotAcceptedError(Error):
    """release() was asked for a delivery that did not pass."""


class GateError(NotAcceptedError):
    """The release does not reach what was required of it, so nothing is published."""
