"""What the name of a column tells, in English and in German."""

import re

__all__ = [
    "TARGETS",
    "is_birth",
    "is_naming",
    "is_number_of_people",
    "is_numbering",
    "is_postcode",
    "is_quantity",
    "is_sensitive",
    "is_target",
]

PART = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NAMING = _words(
    "name surname forename firstname lastname fullname username login email mail phone telephone"
    " mobile fax ssn passport iban address street signature"
    " vorname nachname familienname rufname geburtsname benutzername telefon handy mobil adresse"
    " anschrift strasse straße hausnummer kvnr mrn uuid guid"
)
"""Words for what names people, however often a value occurs."""
OTHER_NAMES = _words(
    "product item brand company firm department station ward school city region country state"
    " county course drug file table column produkt artikel marke firma abteilung klinik schule"
    " stadt ort land region kurs"
)
"""Whose names are not those of people, in front of `name`."""
NUMBERING = _words("id ids nr no number num nbr nummer key code_id")
NUMBERED = re.compile(r"(id|nr|nummer|number|kennung|kennzeichen)$")
COUNTED = _words("number num no anzahl count")
"""Words that, in front, count something: number_diagnoses."""
PEOPLE = re.compile(
    r"patient|pat(ien)?t|person|kunde|customer|client|member|mitglied|mitarbeiter|employee|staff"
    r"|versichert|insured|student|user|respondent|resp(id)?$|subject|proband|kvnr|mrn|ssn|iban"
)
POSTCODE = _words("zip zipcode plz postcode postalcode postleitzahl postal")
BIRTH = re.compile(r"birth|geburt|^geb$|^dob$|^born$|geboren")
SENSITIVE = re.compile(
    r"diagnos|disease|illness|condition|religio|confession|hiv|treatment|therap|medication"
    r"|crime|convict|politic|krankheit|befund|konfession|medikament|vorstrafe|gewerkschaft"
)
MONEY = re.compile(
    r"salary|salaries|wage|income|earning|gehalt|gehälter|lohn|einkommen|verdienst|vermögen"
)
QUANTITY = re.compile(
    r"amount|balance|price|cost|sum|total|value|score|betrag|saldo|kontostand|preis|kosten|summe"
    r"|umsatz|wert|gain|loss|duration|dauer|distance|weight|gewicht|height|population"
)
TARGETS = ("target", "label", "outcome")
"""Names of targets whatever their values, the surest first."""
OTHER_TARGETS = _words(
    "class y income default churn readmitted attrition survived died ziel zielvariable klasse"
    " ergebnis verstorben"
)


def _parts(name: str) -> list[str]:
    """The words of a name: `Patienten-ID` and `patientId` alike."""
    return [part.lower() for part in PART.findall(name)]


def is_naming(name: str) -> bool:
    """Whether it is named like what names people by itself: a surname, an address, an IBAN."""
    parts = _parts(name)
    for i, part in enumerate(parts):
        if part in NAMING or "".join(parts[i : i + 2]) in NAMING:
            return not (part == "name" and i and parts[i - 1] in OTHER_NAMES)
    return False


def is_numbering(name: str) -> bool:
    """Whether it is named like a number of somebody or something."""
    parts = _parts(name)
    if len(parts) > 1 and parts[0] in COUNTED:
        return False
    return any(
        part in NUMBERING or (len(part) > 4 and NUMBERED.search(part) is not None) for part in parts
    )


def is_number_of_people(name: str) -> bool:
    """Whether it is named like the number of a person, not of a case or a name."""
    return PEOPLE.search(name.lower()) is not None


def is_postcode(name: str) -> bool:
    """Whether it is named like a postcode."""
    return not POSTCODE.isdisjoint(_parts(name))


def is_birth(name: str) -> bool:
    """Whether it is named like a birth date."""
    return any(BIRTH.search(part) for part in _parts(name))


def is_sensitive(name: str) -> bool:
    """Whether it is named like what people keep to themselves: health, belief, income."""
    return SENSITIVE.search(name.lower()) is not None or MONEY.search(name.lower()) is not None


def is_quantity(name: str) -> bool:
    """Whether it is named like an amount, which may differ in every row."""
    return QUANTITY.search(name.lower()) is not None


def is_target(name: str) -> bool:
    """Whether it may be named like a target, though not surely."""
    return name.strip().lower() in OTHER_TARGETS
