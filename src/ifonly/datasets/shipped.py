"""German Credit and Heart, which ship with the package (UCI, CC BY 4.0; see ATTRIBUTION.md)."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from ifonly.datasets.dataset import Column, Dataset, Recipe

__all__ = ["german_credit", "heart"]

_CC_BY = "Creative Commons Attribution 4.0 International (CC BY 4.0)"

# Levels are listed from low to high where they have an order, yet none is declared ordered: "no checking" and
# "no known savings" say that nothing is known, not that there is little.
_GERMAN_CREDIT = Recipe(
    name="german_credit",
    columns={
        "checking_status": Column("Checking account (DM)", ("no checking", "<0", "0<=X<200", ">=200")),
        "duration": Column("Duration (months)"),
        "credit_history": Column(
            "Credit history",
            (
                "no credits/all paid",
                "all paid",
                "existing paid",
                "delayed previously",
                "critical/other existing credit",
            ),
        ),
        "purpose": Column(
            "Purpose",
            (
                "new car",
                "used car",
                "furniture/equipment",
                "radio/tv",
                "domestic appliance",
                "repairs",
                "education",
                "retraining",
                "business",
                "other",
            ),
        ),
        "credit_amount": Column("Credit amount (DM)"),
        "savings_status": Column("Savings (DM)", ("no known savings", "<100", "100<=X<500", "500<=X<1000", ">=1000")),
        "employment": Column("Employed for (years)", ("unemployed", "<1", "1<=X<4", "4<=X<7", ">=7")),
        "installment_commitment": Column("Instalment rate (% of income)"),
        "personal_status": Column(
            "Personal status and sex",
            ("male single", "male mar/wid", "male div/sep", "female div/dep/mar"),
        ),
        "other_parties": Column("Other debtors", ("none", "co applicant", "guarantor")),
        "residence_since": Column("At this residence for (years)"),
        "property_magnitude": Column("Property", ("no known property", "car", "life insurance", "real estate")),
        "age": Column("Age (years)"),
        "other_payment_plans": Column("Other instalment plans", ("none", "stores", "bank")),
        "housing": Column("Housing", ("for free", "rent", "own")),
        "existing_credits": Column("Credits at this bank"),
        "job": Column(
            "Job",
            ("unemp/unskilled non res", "unskilled resident", "skilled", "high qualif/self emp/mgmt"),
        ),
        "num_dependents": Column("Dependants"),
        "own_telephone": Column("Telephone", ("none", "yes")),
        "foreign_worker": Column("Foreign worker", ("no", "yes")),
    },
    target="class",
    classes=("good", "bad"),
    wanted="good",
    immutable=("purpose", "personal_status", "foreign_worker"),
    description="Each row is an applicant for a credit at a German bank, judged a good or a bad risk.",
    citation=(
        "Hofmann, H. (1994). Statlog (German Credit Data) [Dataset]. UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C5NC77"
    ),
    licence=_CC_BY,
)

_NO_YES = {0.0: "no", 1.0: "yes"}
# Column -> what the codes in the file mean, in the order in which the levels are shown.
_HEART_CODES: dict[str, dict[float, str]] = {
    "sex": {0.0: "female", 1.0: "male"},
    "cp": {1.0: "typical angina", 2.0: "atypical angina", 3.0: "nonanginal pain", 4.0: "asymptomatic"},
    "fbs": _NO_YES,
    "restecg": {0.0: "normal", 1.0: "ST-T abnormality", 2.0: "left ventricular hypertrophy"},
    "exang": _NO_YES,
    "slope": {1.0: "upsloping", 2.0: "flat", 3.0: "downsloping"},
    "ca": {0.0: "0", 1.0: "1", 2.0: "2", 3.0: "3"},
    "thal": {3.0: "normal", 6.0: "fixed defect", 7.0: "reversible defect"},
    "presence": {1.0: "absent", 2.0: "present"},
}


def _coded(label: str, column: str) -> Column:
    return Column(label, tuple(_HEART_CODES[column].values()))


_HEART = Recipe(
    name="heart",
    columns={
        "age": Column("Age (years)", whole=True),
        "sex": _coded("Sex", "sex"),
        "cp": _coded("Chest pain", "cp"),
        "trestbps": Column("Resting blood pressure (mm Hg)", whole=True),
        "chol": Column("Serum cholesterol (mg/dl)", whole=True),
        "fbs": _coded("Fasting blood sugar > 120 mg/dl", "fbs"),
        "restecg": _coded("Resting ECG", "restecg"),
        "thalach": Column("Maximum heart rate", whole=True),
        "exang": _coded("Angina under exercise", "exang"),
        "oldpeak": Column("ST depression by exercise", precision=1),
        "slope": _coded("Slope of peak exercise ST", "slope"),
        "ca": _coded("Major vessels coloured", "ca"),
        "thal": _coded("Thallium scan", "thal"),
    },
    target="presence",
    classes=("absent", "present"),
    wanted="absent",
    immutable=("age", "sex"),
    description="Each row is a patient examined for heart disease, found absent or present.",
    citation="Statlog (Heart) [Dataset]. UCI Machine Learning Repository. https://doi.org/10.24432/C57303",
    licence=_CC_BY,
)


def german_credit() -> Dataset:
    """Return German Credit: 1,000 applicants, 7 whole-numbered and 13 categorical features, "good" or "bad".

    The data is Statlog (German Credit Data) by Hans Hofmann, UCI Machine Learning Repository, 1994
    (https://doi.org/10.24432/C5NC77), used under CC BY 4.0, with its codes replaced by the labels of OpenML's
    credit-g.

    Examples
    --------
    >>> credit = german_credit()
    >>> credit.frame[["duration", "credit_amount", "age"]].iloc[775].tolist()
    [24, 1371, 25]
    >>> credit.target.value_counts().to_dict()
    {'good': 700, 'bad': 300}
    >>> credit.schema.label("savings_status")
    'Savings (DM)'
    """
    return _GERMAN_CREDIT.build(_read("german_credit.csv"), "german_credit.csv")


def heart(*, raw: bool = False) -> Dataset:
    """Return Heart: 270 patients, 5 numeric and 8 categorical features, disease "absent" or "present".

    The data is Statlog (Heart), UCI Machine Learning Repository (https://doi.org/10.24432/C57303), used under
    CC BY 4.0.

    Parameters
    ----------
    raw
        Return the coded numbers of the original instead of labels and whole numbers: all features are floats (the
        schema still reads the coded ones as categories), and the target is 1 (absent) or 2 (present).

    Examples
    --------
    >>> patients = heart()
    >>> patients.frame[["age", "sex", "thal"]].head(2)
       age     sex               thal
    0   70    male             normal
    1   67  female  reversible defect
    >>> heart(raw=True).frame[["age", "sex", "thal"]].head(2)
        age  sex  thal
    0  70.0  1.0   3.0
    1  67.0  0.0   7.0
    """
    table = _read("heart.csv")
    if raw:
        return _HEART.dataset(table[list(_HEART.columns)], table[_HEART.target], wanted=1)
    words = {name: table[name].map(codes) for name, codes in _HEART_CODES.items()}
    whole = {name: table[name].astype("int64") for name, column in _HEART.columns.items() if column.whole}
    return _HEART.build(table.assign(**words, **whole), "heart.csv")


def _read(file: str) -> pd.DataFrame:
    with (files("ifonly.datasets") / "data" / file).open(encoding="ascii") as stream:
        return pd.read_csv(stream, keep_default_na=False)
