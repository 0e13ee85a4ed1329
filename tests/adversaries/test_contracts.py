"""Every adversary is caught, and no honest provider stopped, under every contract."""

from collections.abc import Callable

import pytest

from adversaries.contracts import CONTRACTS, failed, judged, of_census, prepared
from tools import cases
from verix_anon import adversaries
from verix_anon.adversaries import ADVERSARIES, deviating_growth
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Outcome
from verix_anon.errors import ProviderError
from verix_anon.protocol.contract import Rule
from verix_anon.provider.local import LocalProvider

# In a small table the column that spreads widest mostly spreads widest in a sample as well.
MAY_BE_HONEST = {"sampled-scores"}

Owner = Callable[[str], Prepared]

pytestmark = pytest.mark.usefixtures("quick_models")


def pairs() -> list[tuple[str, str]]:
    """Every contract, with every adversary that can misbehave under it."""
    return [(c, name) for c, agreed in CONTRACTS.items() for name in adversaries.under(agreed.rule)]


@pytest.mark.parametrize("owner", [prepared, of_census])
@pytest.mark.parametrize("contract", CONTRACTS)
def test_honest(contract: str, owner: Owner) -> None:
    made = owner(contract)
    delivery = cases.honest(made.submission)
    assert judged(delivery, made).outcome is Outcome.VERIFIED
    assert judged(delivery, made, thin=True).outcome is Outcome.VERIFIED


def assert_caught(name: str, made: Prepared, seed: int) -> None:
    """In full, unless the delivery happens to be the honest one."""
    delivery = ADVERSARIES[name](seed).anonymize(made.submission)
    if delivery.header.root == cases.honest(made.submission).header.root:
        assert name in MAY_BE_HONEST
        pytest.skip(f"{name} happens to deliver what an honest provider would")
    assert failed(judged(delivery, made))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(("contract", "name"), pairs())
def test_caught_with_the_submission(contract: str, name: str, seed: int) -> None:
    assert_caught(name, prepared(contract, seed=seed), seed)


@pytest.mark.parametrize(("contract", "name"), pairs())
def test_caught_on_the_census(contract: str, name: str) -> None:
    assert_caught(name, of_census(contract), 3)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_rule_by_choice_is_the_rule(contract: str) -> None:
    sent = prepared(contract).submission
    grown = deviating_growth.deliver(
        sent, deviating_growth.grow(sent, deviating_growth.by_the_rule)
    )
    assert grown.header.root == LocalProvider(threads=1).anonymize(sent).header.root


def test_some_misbehave_under_one_rule_only() -> None:
    labels, spread = (set(adversaries.under(rule)) for rule in Rule)
    assert labels - spread == {"flipped-labels"}
    assert spread - labels == {"no-weights", "mixed-weights", "no-value-below"}
    assert labels | spread == set(ADVERSARIES)


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if adversaries.only(name)])
def test_refuses_where_it_has_nothing_to_do(name: str) -> None:
    rule = adversaries.only(name)
    contract = next(c for c, agreed in CONTRACTS.items() if agreed.rule is not rule)
    with pytest.raises(ProviderError, match=f"under the rule {rule} alone"):
        ADVERSARIES[name](0).anonymize(prepared(contract).submission)
