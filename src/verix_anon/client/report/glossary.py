"""The words of the report, each explained once for somebody who has not read the specification."""

from dataclasses import dataclass

from verix_anon.client.verdict import Profile


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """Words that go together, and what they mean."""

    terms: tuple[str, ...]
    meaning: str

    @property
    def title(self) -> str:
        """The words in one line."""
        return ", ".join(self.terms)


def _group(*entries: tuple[str, str]) -> tuple[GlossaryEntry, ...]:
    return tuple(GlossaryEntry(tuple(terms.split(", ")), meaning) for terms, meaning in entries)


GLOSSARY: dict[str, tuple[GlossaryEntry, ...]] = {
    "Who, and what passes between them": _group(
        ("controller", "Who answers for the table, and had it anonymized: its owner."),
        ("processor, provider", "Who did the work. It is the one that is audited here."),
        ("contract", "What was agreed: k, the columns, the rule."),
        ("submission", "What was sent to the provider."),
        ("delivery", "What came back."),
        ("manifest", "What the owner keeps secret of a submission, such as what is planted in it."),
        ("engine", "The program that the provider says it used."),
        ("release", "The table made of a delivery for publication; traps are taken out of it."),
        ("privacy sheet", "What was measured on a release."),
        ("digest, SHA-256", "A number that changes with every change of a file."),
        ("root", "One digest over all groups of a delivery: the provider's seal."),
        ("key", "A pair of numbers: with the secret one its holder signs, the other shows it."),
        ("pinned", "A key that the owner learnt by another way than a delivery, and goes by."),
    ),
    "The verdict": _group(
        ("VERIFIED", "Every layer that decides passed."),
        ("VIOLATION", "A layer that decides failed."),
        ("INCONCLUSIVE", "None failed, but one that decides could not be run."),
        ("profile", "Which layers decide."),
        ("full", "The profile with the submission at hand: everything is checked."),
        ("thin", "The profile by the manifest alone: some things are checked by a sample."),
        ("paper", "The profile of the published system: less is checked, and with errors."),
        ("layer", "One check of a delivery."),
        ("decides, informs", "Whether a layer counts for the verdict, or is for reading only."),
        ("pass, fail", "It looked, and found nothing wrong; or something."),
        ("inconclusive", "It measured and cannot judge, such as for want of a threshold."),
        ("skipped", "It did not look."),
        ("guarantee", "How sure a layer's answer is."),
        ("unsafe seed", "The secrets can be worked out again: for experiments only."),
    ),
    "The layers": _group(
        ("commitment", "Compares the root with the files, the contract and the submission."),
        ("sentinels", "Looks for the sentinels."),
        ("twins", "Looks for the twins."),
        ("replay", "Puts every record through the delivered tree again."),
        ("splits", "Works out every split again by the agreed rule."),
        ("fingerprint", "Measures how far SHAP values moved. Honest work moves them, too."),
        ("utility", "Measures what a model is worth that learnt from the delivery."),
        ("receipt", "Looks for the provider's signature under the files, if its key is pinned."),
    ),
    "Records": _group(
        ("genuine record", "A record of the owner's table."),
        ("trap", "A record that the owner planted: a sentinel or a twin."),
        ("sentinel", "A planted record that resembles a genuine one. It must come back."),
        ("twin", "A planted copy of a genuine record. Both must come back, in one group."),
        ("tracker", "A random mark on each record. It does not tell traps from genuine ones."),
        ("watch record", "A genuine record whose treatment the owner can check by the manifest."),
        ("witness", "A watch record whose way through the tree was worked out beforehand."),
        ("evasion curve", "How likely it is that dropping some share of the records goes unseen."),
        ("person", "What k counts: a record, or all records of one value of a chosen column."),
    ),
    "Columns": _group(
        ("role", "What a column is to the owner: one of the next five."),
        ("identifier", "Names people. Never sent, and dropped for good."),
        ("quasi, quasi-identifiers", "Known to others too, such as an age. Sent, and generalized."),
        ("kept", "Never sent; it stands in the release as it is."),
        ("sensitive", "Like kept, and measured: what nobody should learn of anybody."),
        ("target", "What models are to predict from the release; its values are the labels."),
        ("coded", "Sent as places instead of values, without names."),
        ("place", "The position of a value among those of its column, in order."),
        ("clear", "Sent as it is."),
        ("generalized", "Given in common for a whole class, such as an interval."),
    ),
    "Groups": _group(
        ("tree, node, split", "The rule divides the records in two at a node, again and again."),
        ("group, leaf", "The records at one end of the tree; they get common bounds."),
        ("bounds", "The least and the greatest value of a group."),
        ("class", "All records that look alike in the release by their quasi-identifiers."),
        ("joined", "Groups that fell short without their traps, made one class."),
        ("k", "Every class of the release holds at least so many persons."),
    ),
    "Measures": _group(
        ("singled out", "Alone in its class with its kept and sensitive values: they find it."),
        (
            "alone with a printed bound",
            "Nobody else in the table has the value that a bound of its class shows.",
        ),
        ("give away", "All of a class share a value: whoever finds the class knows it."),
        ("risk", "The chance that a record of a class is one given person's, at worst."),
        ("l", "How many distinct values every class has of a column."),
        ("entropy l", "The same, counting rare values for less."),
        ("cap", "The greatest share of records, and of people, that have one value in any class."),
        ("t", "How far the values of any class are from all of the table's: 0 to 1, likewise."),
        ("NCP", "Detail lost: the mean width of published values; 0 is none, 1 is all."),
        ("SHAP value", "How much one column moves a model's prediction for one record."),
        ("honest run", "The agreed work done by the owner on a sample, for comparison."),
        ("threshold", "How far SHAP values may move; without honest runs there is none."),
        ("p-value", "The share of honest runs that moved as far; small is unusual."),
        ("F1, macro F1, AUC", "How well a model tells classes apart; 1 is without a mistake."),
        ("R2, mean absolute error", "How close a model comes to a quantity: 1, or 0, at best."),
    ),
}
"""By subject."""


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
