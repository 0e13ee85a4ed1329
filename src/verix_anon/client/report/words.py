"""What each layer means to somebody who has not read the specification."""

from dataclasses import dataclass

from verix_anon.client.verdict import Profile

__all__ = ["Words", "words"]


@dataclass(frozen=True, slots=True)
class Words:
    """A layer in plain words."""

    question: str
    proves: str
    proves_not: str


WORDS = {
    "commitment": Words(
        "Do the files belong together, and to this job?",
        "The provider's seal, one number computed from the groups it delivered, fits the files we"
        " hold and names our contract and our submission. The groups cannot be exchanged"
        " afterwards; labels are compared by another check.",
        "That the work was done well. Any tree at all can be sealed correctly.",
    ),
    "sentinels": Words(
        "Did the check records that we planted come back?",
        "Every planted record came back under its own tracker, so a provider that left out records"
        " without looking would very likely have lost some.",
        "That they were processed. A provider that returns what it left out, or finds out which"
        " records were planted, is not seen here.",
    ),
    "twins": Words(
        "Did the duplicates that we planted come back, each pair together?",
        "Both records of every planted pair came back and were treated alike.",
        "That the rest was processed. Exact duplicates are easy to find.",
    ),
    "replay": Words(
        "Is every record there, and in the right group?",
        "Every record that was sent came back once, with its own label, in the group that the"
        " delivered tree puts it in. Nothing is missing, doubled or invented, the published"
        " bounds are true, and every group has the agreed size.",
        "That the tree is the agreed one. That is the next layer's question.",
    ),
    "splits": Words(
        "Was the agreed rule followed?",
        "The groups were formed by the agreed rule and no other: each step of the tree is the one"
        " that the rule takes on these very records.",
        "That the rule, or k, is the right choice for this table.",
    ),
    "fingerprint": Words(
        "Does a model still use the columns in the same way?",
        "Nothing. It measures how far the weight that a model gives to the most important columns"
        " moved through the anonymization.",
        "That the agreed rule ran. Honest work moves these values too, on some tables as far as"
        " careless work does.",
    ),
    "utility": Words(
        "Is the result still useful?",
        "Nothing. It measures how well a model that learnt from the delivery predicts the target,"
        " beside one that learnt from the raw records.",
        "That your own use of the data will do as well.",
    ),
    "receipt": Words(
        "Has the provider signed for these files?",
        "The holder of a key that we pinned signed that it made these very files for this contract"
        " and submission. It cannot say later that they are not its own.",
        "That the work is right, which the other checks look at; when it was done, which is the"
        " provider's word; and who holds the key, which we learnt by another way.",
    ),
}
THIN = {
    "replay": Words(
        WORDS["replay"].question,
        "Every record that was sent came back once, with its own label. A secret selection of them"
        " lies in the groups that the delivered tree puts them in.",
        "Where each of the other records lies, or that no published interval is wider than it"
        " should be. And that the tree is the agreed one, which is the next layer's question.",
    ),
    "splits": Words(
        WORDS["splits"].question,
        "For a few secret records, the way through the tree is the one that we worked out by the"
        " agreed rule before anything was sent.",
        "Anything of parts of the tree that none of these records passes.",
    ),
}
UNKNOWN = Words("A check that this version does not know", "Not known here.", "Not known here.")


def words(layer: str, profile: Profile) -> Words:
    """The words for a layer in a profile."""
    if profile is Profile.THIN and layer in THIN:
        return THIN[layer]
    return WORDS.get(layer, UNKNOWN)
