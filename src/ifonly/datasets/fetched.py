"""Adult, COMPAS, HELOC and Give Me Some Credit, in the CARLA library's 75/25 split, which the paper uses."""

from __future__ import annotations

from typing import Literal, get_args

import pandas as pd

from ifonly.datasets.dataset import Column, Dataset, Recipe
from ifonly.datasets.store import locate
from ifonly.errors import SchemaError

__all__ = ["Part", "adult", "compas", "give_me_some_credit", "heloc"]

Part = Literal["train", "test"]

_ADULT = Recipe(
    name="adult",
    columns={
        "age": Column("Age (years)"),
        "workclass": Column("Employer", ("Non-Private", "Private")),
        "fnlwgt": Column("Census weight"),
        "education-num": Column("Education (years)"),
        "marital-status": Column("Marital status", ("Non-Married", "Married")),
        "occupation": Column("Occupation", ("Other", "Managerial-Specialist")),
        "relationship": Column("Relationship", ("Non-Husband", "Husband")),
        "race": Column("Race", ("Non-White", "White")),
        "sex": Column("Sex", ("Female", "Male")),
        "capital-gain": Column("Capital gain (USD)"),
        "capital-loss": Column("Capital loss (USD)"),
        "hours-per-week": Column("Hours per week"),
        "native-country": Column("Native country", ("Non-US", "US")),
    },
    target="income",
    classes=(0, 1),
    wanted=1,
    immutable=("age", "sex"),
    description="Each row is a person of the 1994 US census; income is 1 above 50,000 dollars a year.",
    citation=(
        "Becker, B. and Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository. "
        "https://doi.org/10.24432/C5XW20"
    ),
    licence="Creative Commons Attribution 4.0 International (CC BY 4.0)",
)

_COMPAS = Recipe(
    name="compas",
    columns={
        "age": Column("Age (years)"),
        "two_year_recid": Column("Reoffended within two years"),
        "c_charge_degree": Column("Charge degree", ("M", "F")),
        "race": Column("Race", ("Other", "African-American")),
        "sex": Column("Sex", ("Female", "Male")),
        "priors_count": Column("Prior offences"),
        "length_of_stay": Column("Days in jail"),
    },
    target="score",
    classes=(0, 1),
    wanted=1,
    immutable=("age", "race", "sex"),
    description="Each row is a defendant in Broward County; score is 1 unless COMPAS rated the risk as high.",
    citation=(
        "Larson, J., Mattu, S., Kirchner, L. and Angwin, J. (2016). How we analyzed the COMPAS recidivism "
        "algorithm. ProPublica. https://github.com/propublica/compas-analysis"
    ),
    licence="Published by ProPublica together with its analysis; no licence is stated.",
)

# Missing values of the original were filled with class means, so only some of the counts are whole numbers.
_HELOC = Recipe(
    name="heloc",
    columns={
        "ExternalRiskEstimate": Column("External risk estimate"),
        "MSinceOldestTradeOpen": Column("Months since oldest trade opened"),
        "MSinceMostRecentTradeOpen": Column("Months since latest trade opened", whole=True),
        "AverageMInFile": Column("Average months in file", whole=True),
        "NumSatisfactoryTrades": Column("Satisfactory trades", whole=True),
        "NumTrades60Ever2DerogPubRec": Column("Trades ever 60 days late", whole=True),
        "NumTrades90Ever2DerogPubRec": Column("Trades ever 90 days late", whole=True),
        "PercentTradesNeverDelq": Column("Trades never delinquent (%)", whole=True),
        "MSinceMostRecentDelq": Column("Months since latest delinquency"),
        "NumTotalTrades": Column("Trades", whole=True),
        "NumTradesOpeninLast12M": Column("Trades opened in 12 months", whole=True),
        "PercentInstallTrades": Column("Instalment trades (%)", whole=True),
        "MSinceMostRecentInqexcl7days": Column("Months since latest inquiry"),
        "NumInqLast6M": Column("Inquiries in 6 months", whole=True),
        "NumInqLast6Mexcl7days": Column("Inquiries in 6 months, without last 7 days", whole=True),
        "NetFractionRevolvingBurden": Column("Revolving burden (%)"),
        "NetFractionInstallBurden": Column("Instalment burden (%)"),
        "NumRevolvingTradesWBalance": Column("Revolving trades with balance"),
        "NumInstallTradesWBalance": Column("Instalment trades with balance"),
        "NumBank2NatlTradesWHighUtilization": Column("Trades with high utilisation"),
        "PercentTradesWBalance": Column("Trades with balance (%)"),
    },
    target="RiskPerformance",
    classes=(0, 1),
    wanted=1,
    immutable=(),
    description="Each row is a home equity line of credit; RiskPerformance is 1 when it was repaid.",
    citation="FICO (2018). Explainable Machine Learning Challenge: Home Equity Line of Credit (HELOC) data.",
    licence="Given by FICO for its challenge, under the challenge's own terms.",
)

_GIVE_ME_SOME_CREDIT = Recipe(
    name="give_me_some_credit",
    columns={
        "RevolvingUtilizationOfUnsecuredLines": Column("Utilisation of unsecured lines"),
        "age": Column("Age (years)"),
        "NumberOfTime30-59DaysPastDueNotWorse": Column("Times 30-59 days late"),
        "DebtRatio": Column("Debt ratio"),
        "MonthlyIncome": Column("Monthly income (USD)", whole=True),
        "NumberOfOpenCreditLinesAndLoans": Column("Open credit lines and loans"),
        "NumberOfTimes90DaysLate": Column("Times 90 days late"),
        "NumberRealEstateLoansOrLines": Column("Real estate loans or lines"),
        "NumberOfTime60-89DaysPastDueNotWorse": Column("Times 60-89 days late"),
        "NumberOfDependents": Column("Dependants", whole=True),
    },
    target="SeriousDlqin2yrs",
    classes=(0, 1),
    wanted=1,
    immutable=("age",),
    description="Each row is a borrower; SeriousDlqin2yrs is 1 (good) without serious delay in two years.",
    citation="Kaggle (2011). Give Me Some Credit. https://www.kaggle.com/c/GiveMeSomeCredit",
    licence="Given for a Kaggle competition, under the competition's own rules.",
)


def adult(part: Part = "train") -> Dataset:
    """Return Adult: who earns more than 50,000 dollars; 6 whole-numbered and 7 binary features.

    The data is Adult by Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, 1996
    (https://doi.org/10.24432/C5XW20), CC BY 4.0, with categories merged into two by the CARLA library.

    Parameters
    ----------
    part
        "train" (36,624 rows) or "test" (12,208 rows).

    Raises
    ------
    DatasetMissing
        When the file is not in the data folder and cannot be downloaded.
    """
    return _load(_ADULT, part)


def compas(part: Part = "train") -> Dataset:
    """Return COMPAS: whose risk of reoffending is not rated high; 4 whole-numbered and 3 binary features.

    The data was published by ProPublica (Larson et al. 2016).

    Parameters
    ----------
    part
        "train" (4,629 rows) or "test" (1,543 rows).

    Raises
    ------
    DatasetMissing
        When the file is not in the data folder and cannot be downloaded.
    """
    return _load(_COMPAS, part)


def heloc(part: Part = "train") -> Dataset:
    """Return HELOC: who repays a home equity line of credit; 21 numeric features.

    The data was given by FICO for its Explainable Machine Learning Challenge (2018).

    Parameters
    ----------
    part
        "train" (7,403 rows) or "test" (2,468 rows).

    Raises
    ------
    DatasetMissing
        When the file is not in the data folder and cannot be downloaded.
    """
    return _load(_HELOC, part)


def give_me_some_credit(part: Part = "train") -> Dataset:
    """Return Give Me Some Credit: who pays without serious delay; 10 numeric features.

    The data was given for a Kaggle competition (2011). The outcome is turned round by the CARLA library: 1 is good.

    Parameters
    ----------
    part
        "train" (86,645 rows) or "test" (28,882 rows).

    Raises
    ------
    DatasetMissing
        When the file is not in the data folder and cannot be downloaded.
    """
    return _load(_GIVE_ME_SOME_CREDIT, part)


def _load(recipe: Recipe, part: Part) -> Dataset:
    if part not in get_args(Part):
        raise ValueError(f"The 'part' parameter of {recipe.name} must be 'train' or 'test'. Got {part!r}.")
    path = locate(f"{recipe.name}_{part}.csv")
    try:
        table = pd.read_csv(path, keep_default_na=False)
    except ValueError as error:
        raise SchemaError(
            f"{path} is not the {recipe.name} data: it cannot be read as CSV ({error}). Put the right file there, or "
            "remove this one."
        ) from error
    return recipe.build(table, str(path))
