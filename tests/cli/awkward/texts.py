"""Text tables, each as a program writes it in some corner of the world."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.awkward.people import PEOPLE, Awkward, columns, german, grouped

__all__ = ["TEXTS"]

BORN, SEX, POSTCODE, HEIGHT, COST, WARD, CURED, NUMBER = columns(
    "born", "sex", "postcode", "height", "cost", "ward", "cured", "number"
)
SAID = [f"a,\nb {i % 3}" for i in range(len(PEOPLE))]
BASE = {"Fall": NUMBER, "Geburt": BORN, "PLZ": POSTCODE, "Größe": HEIGHT, "geheilt": CURED}
US = {"id": NUMBER, "birth": BORN, "zip": POSTCODE, "sex": SEX, "cost": COST, "cured": CURED}


def written(name: str, text: str, encoding: str = "utf-8", end: str = "\n") -> Callable[[], None]:
    data = text.replace("\n", end).encode(encoding)
    return lambda: _write(name, data)


def _write(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)


def lines(delimiter: str, *rows: Sequence[object]) -> str:
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def table(delimiter: str, names: Sequence[str], *cells: Sequence[object]) -> str:
    """A header and rows, of columns as they are to be written."""
    return lines(delimiter, names, *zip(*cells, strict=True))


def comma(values: Sequence[object]) -> list[str]:
    return [str(value).replace(".", ",") for value in values]


def quoted(values: Sequence[object]) -> list[str]:
    return [f'"{value}"' for value in values]


def days(form: str) -> list[str]:
    return [f"{person.born:{form}}" for person in PEOPLE]


def euros(cost: float) -> str:
    return grouped(cost, ".", ",")


GERMAN = [german(person.born) for person in PEOPLE]
CONTINENTAL = table(";", list(BASE), NUMBER, GERMAN, POSTCODE, comma(HEIGHT), CURED)


def excel() -> list[Awkward]:
    """What Excel saves as CSV or text, by the settings of the country."""
    swiss = [grouped(person.cost, "'", ".") for person in PEOPLE]
    french = [grouped(person.cost, "\u202f", ",") for person in PEOPLE]
    padded = CONTINENTAL + lines(
        ";", ["Quelle: Aufnahme", "", "", "", ""], ["Stand: 2024", *[""] * 4]
    )
    title = lines(";", ["Klinik München, Aufnahmen", *[""] * 4], [""] * 5)
    return [
        Awkward(
            name="german.csv",
            make=written("german.csv", "sep=;\n" + CONTINENTAL, "cp1252", "\r\n"),
            true=BASE,
            said=["semicolons, Windows-1252, decimal comma, dates dd.mm.yyyy"],
        ),
        Awkward(
            name="swiss.csv",
            make=written(
                "swiss.csv",
                table(";", ["Fall", "Geburt", "Kosten", "Größe"], NUMBER, GERMAN, swiss, HEIGHT),
                "cp1252",
                "\r\n",
            ),
            true={"Fall": NUMBER, "Geburt": BORN, "Kosten": COST, "Größe": HEIGHT},
            said=["decimal point, thousands apostrophe"],
        ),
        Awkward(
            name="french.csv",
            make=written(
                "french.csv",
                table(";", ["Né le", "Coût", "Guéri"], days("%d/%m/%Y"), french, CURED),
                "utf-8-sig",
                "\r\n",
            ),
            true={"Né le": BORN, "Coût": COST, "Guéri": CURED},
            said=["decimal comma, thousands space, dates dd/mm/yyyy"],
        ),
        Awkward(
            name="unicode text.txt",
            make=written("unicode text.txt", CONTINENTAL.replace(";", "\t"), "utf-16", "\r\n"),
            true=BASE,
            said=["tabs, UTF-16, decimal comma"],
        ),
        Awkward(
            name="with title and sum.csv",
            make=written(
                "with title and sum.csv",
                title + CONTINENTAL + lines(";", ["Summe", "", "", "137,2", ""]),
                "cp1252",
                "\r\n",
            ),
            true=BASE,
            said=["above the header is left out: 'Klinik", "below the rows is left out: 'Summe"],
        ),
        Awkward(
            name="with sources.csv",
            make=written("with sources.csv", padded, "cp1252", "\r\n"),
            true=BASE,
            said=["below the rows is left out: 'Quelle: Aufnahme"],
        ),
        Awkward(
            name="mac.csv",
            make=written("mac.csv", CONTINENTAL, "utf-8", "\r"),
            true=BASE,
        ),
    ]


def statistics() -> list[Awkward]:
    """R, pandas and the like."""
    rows = quoted(range(1, len(PEOPLE) + 1))
    some = [None if i % 9 == 0 else value for i, value in enumerate(HEIGHT)]
    marked = ["NA" if value is None else value for value in some]
    true: dict[str, Sequence[object]] = {
        "column 1": list(range(1, len(PEOPLE) + 1)),
        "born": BORN,
        "height": some,
        "ward": WARD,
    }
    names = quoted(["", "born", "height", "ward"])
    index = [i - 1 for i in range(1, len(PEOPLE) + 1)]
    return [
        Awkward(
            name="write.csv2.csv",
            make=written(
                "write.csv2.csv", table(";", names, rows, BORN, comma(marked), quoted(WARD))
            ),
            true=true,
            said=["decimal comma", "column 1 has no name"],
        ),
        Awkward(
            name="write.csv.csv",
            make=written("write.csv.csv", table(",", names, rows, BORN, marked, quoted(WARD))),
            true=true,
        ),
        Awkward(
            name="pandas.csv.gz",
            make=lambda: _write(
                "pandas.csv.gz",
                gzip.compress(table(",", ["", "born", "sex"], index, BORN, SEX).encode()),
            ),
            true={"column 1": index, "born": BORN, "sex": SEX},
        ),
        Awkward(
            name="wide.csv",
            make=written(
                "wide.csv",
                lines(
                    ",",
                    ["born", *(f"q{i}" for i in range(150)), "cured"],
                    *([p.born, *((p.number * i) % 5 for i in range(150)), p.cured] for p in PEOPLE),
                ),
            ),
            true={"born": BORN, "q7": [(p.number * 7) % 5 for p in PEOPLE], "cured": CURED},
        ),
    ]


def business() -> list[Awkward]:
    """Databases and business software."""
    ruler = "-" * 44 + "\n"
    list_of = ["|Fall |Geburt    |PLZ  |   Kosten|geheilt|\n"] + [
        f"|{p.number:<5}|{german(p.born)}|{p.postcode}|{euros(p.cost):>9}|{p.cured:<7}|\n"
        for p in PEOPLE
    ]
    sap = f"Patientenliste  12.03.2024\n\n{ruler}{list_of[0]}{ruler}{''.join(list_of[1:])}{ruler}"
    nothing = [r"\N" if i % 11 == 0 else v for i, v in enumerate(HEIGHT)]
    heights = [None if i % 11 == 0 else v for i, v in enumerate(HEIGHT)]
    at_midnight = [f"{day} 00:00:00" for day in GERMAN]
    moments = [f"{p.born:%Y-%m-%d}T12:30:00" for p in PEOPLE]
    escaped = [rf'"Station \"{ward}\""' for ward in WARD]
    return [
        Awkward(
            name="sap.txt",
            make=written("sap.txt", sap, "cp1252", "\r\n"),
            true={
                "Fall": NUMBER,
                "Geburt": BORN,
                "PLZ": POSTCODE,
                "Kosten": COST,
                "geheilt": CURED,
            },
            said=["bars", "'Patientenliste"],
        ),
        Awkward(
            name="copy.tsv",
            make=written("copy.tsv", table("\t", ["born", "height", "sex"], BORN, nothing, SEX)),
            true={"born": BORN, "height": heights, "sex": SEX},
            said=["means missing in column 'height'"],
        ),
        Awkward(
            name="access.txt",
            make=written(
                "access.txt",
                table(
                    ";",
                    quoted(["Nr", "Geburt", "Station", "Größe"]),
                    NUMBER,
                    at_midnight,
                    quoted(WARD),
                    comma(HEIGHT),
                ),
                "cp1252",
                "\r\n",
            ),
            true={"Nr": NUMBER, "Station": WARD, "Größe": HEIGHT},
            said=["dates dd.mm.yyyy hh:mm:ss"],
        ),
        Awkward(
            name="mysql.csv",
            make=written("mysql.csv", table(",", ["born", "ward", "zip"], BORN, escaped, POSTCODE)),
            true={"born": BORN, "ward": [f'Station "{ward}"' for ward in WARD], "zip": POSTCODE},
        ),
        Awkward(
            name="events.csv",
            make=written("events.csv", table(",", ["at", "sex", "cost"], moments, SEX, COST)),
            true={"sex": SEX, "cost": COST},
        ),
        Awkward(
            name="notes.csv",
            make=written(
                "notes.csv",
                table(",", ["born", "said", "sex"], BORN, quoted(SAID), SEX),
            ),
            true={"born": BORN, "said": SAID, "sex": SEX},
        ),
    ]


def names() -> list[Awkward]:
    """Headers that nobody would choose."""
    odd = ["Geburt ", " Geschlecht", "", "Ort", ""]
    web = ["<b>born</b>", "größe & höhe", "=1+1", "😀", 'a "b"']
    return [
        Awkward(
            name="blanks.csv",
            make=written(
                "blanks.csv",
                table(";", odd, GERMAN, SEX, comma(HEIGHT), POSTCODE, [""] * len(PEOPLE)),
            ),
            true={"Geburt": BORN, "Geschlecht": SEX, "column 3": HEIGHT, "Ort": POSTCODE},
            said=["blanks around the name", "column 3 has no name", "column 5 has neither"],
        ),
        Awkward(
            name="web & emoji.csv",
            make=written(
                "web & emoji.csv",
                table(
                    ",",
                    [*web[:4], '"a ""b"""'],
                    BORN,
                    HEIGHT,
                    POSTCODE,
                    SEX,
                    CURED,
                ),
            ),
            true=dict(zip(web, (BORN, HEIGHT, POSTCODE, SEX, CURED), strict=True)),
        ),
    ]


def values() -> list[Awkward]:
    """Values that could be something else, and what their owner answers."""
    words = ["k.A.", "-", "NA"]
    unsaid = [words[i % 3] if i % 7 == 0 else v for i, v in enumerate(comma(HEIGHT))]
    heights = [None if i % 7 == 0 else v for i, v in enumerate(HEIGHT)]
    ages = [2024 - person.born.year for person in PEOPLE]
    nines = [999 if i % 13 == 0 else age for i, age in enumerate(ages)]
    known = [None if i % 13 == 0 else age for i, age in enumerate(ages)]
    codes = [f"{person.number % 60:05}" for person in PEOPLE]
    early = [person.born.replace(day=person.born.day % 12 + 1) for person in PEOPLE]
    visits = [f"V{i}" for i in range(2 * len(PEOPLE))]
    return [
        Awkward(
            name="unsaid.csv",
            make=written("unsaid.csv", table(";", ["Geburt", "Größe", "m/w"], GERMAN, unsaid, SEX)),
            true={"Geburt": BORN, "Größe": heights, "m/w": SEX},
            said=["means missing in column 'Größe'"],
        ),
        Awkward(
            name="nines.csv",
            make=written("nines.csv", table(",", ["age", "born", "sex"], nines, BORN, SEX)),
            true={"age": known, "born": BORN, "sex": SEX},
            said=["column 'age' has 999"],
            added='[reading.missing]\n"age" = ["999"]\n',
        ),
        Awkward(
            name="codes.csv",
            make=written("codes.csv", table(",", ["code", "zip", "cost"], codes, POSTCODE, COST)),
            true={"code": codes, "zip": POSTCODE, "cost": COST},
        ),
        Awkward(
            name="us.csv",
            make=written(
                "us.csv",
                table(",", list(US), NUMBER, days("%m/%d/%y"), POSTCODE, SEX, COST, CURED),
            ),
            true=US,
            said=["which years are meant is not said"],
            answers=['"birth" = "mm/dd/yy from 1925"'],
        ),
        Awkward(
            name="either way.csv",
            make=written(
                "either way.csv",
                table(",", ["birth", "sex"], [f"{day:%d/%m/%Y}" for day in early], SEX),
            ),
            true={"birth": early, "sex": SEX},
            said=["day and month may be either way round"],
            answers=['"birth" = "dd/mm/yyyy"'],
        ),
        Awkward(
            name="thousands.csv",
            make=written(
                "thousands.csv",
                table(";", ["Miete", "m/w"], [f"1.{100 + int(p.cost) % 900}" for p in PEOPLE], SEX),
            ),
            true={"Miete": [1100 + int(p.cost) % 900 for p in PEOPLE], "m/w": SEX},
            said=["may be thousands or decimals"],
            answers=['decimal = ","'],
        ),
        Awkward(
            name="months.csv",
            make=written(
                "months.csv",
                table(",", ["birth", "sex", "cost"], days("%d-%b-%Y"), SEX, COST),
            ),
            true={"birth": BORN, "sex": SEX, "cost": COST},
            said=["dates dd-mmm-yyyy"],
        ),
        Awkward(
            name="visits.csv",
            make=written(
                "visits.csv",
                table(
                    ",",
                    ["visit", "patient_id", "birth", "sex", "cost"],
                    visits,
                    *([*one, *one] for one in (NUMBER, BORN, SEX, COST)),
                ),
            ),
            true={
                name: [*one, *one] for name, one in US.items() if name in ("birth", "sex", "cost")
            },
            roles={"patient_id": "identifier"},
            person="patient_id",
            persons=[*NUMBER, *NUMBER],
        ),
    ]


TEXTS = [*excel(), *statistics(), *business(), *names(), *values()]
