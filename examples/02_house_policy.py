"""A house policy: what the house forbids holds for everybody; what one person cannot do goes into the call."""

from ifonly import Actionability, Explainer, Implies, LinearRow, Proximity, Sparsity
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

credit = german_credit()
model = credit_model("linear", credit.frame, credit.target)
applicant = credit.frame.iloc[11]

free = Explainer(model, credit.frame, schema=credit.schema, criteria=[Proximity("l1", scale="mad")])
print("Without a policy, the model's easiest way out may be one nobody can take:\n")
print(free.explain(applicant, want="good"))

house = [
    Proximity("l1", scale="mad"),
    Sparsity(price=0.1),
    Actionability(
        frozen=["personal_status", "foreign_worker", "purpose", "num_dependents"],
        increase=["age", "residence_since"],
        ranges={"duration": (6, 60), "credit_amount": (500, None)},
        # At least 50 marks a month, or the loan is not worth its paperwork.
        rows=[LinearRow({"credit_amount": 1, "duration": -50}, at_least=0)],
    ),
]
bank = Explainer(model, credit.frame, schema=credit.schema, criteria=house)
print("\nWith the policy of the house:\n")
print(bank.explain(applicant, want="good"))

mine = Actionability(
    frozen=["checking_status"],
    max_step={"duration": 24},
    # Whoever brings a guarantor need not shorten the loan as well.
    implies=[Implies({"other_parties": "guarantor"}, {"duration": (48, None)})],
)
print("\n... and with what this applicant can do:\n")
print(bank.explain(applicant, want="good", criteria=[mine]))
