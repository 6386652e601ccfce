"""Answers one can believe in: several of them, with room around them, and with their consequences."""

from sklearn.base import clone

from ifonly import Actionability, Causality, Cause, Diversity, Explainer, Robustness, Sparsity
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

credit = german_credit()
X, y = credit.frame, credit.target
model = credit_model("linear", X, y)
applicant = X.iloc[11]
house = [
    Sparsity(price=0.1),
    Actionability(frozen=["personal_status", "foreign_worker", "purpose", "age"]),
]
explainer = Explainer(model, X, schema=credit.schema, criteria=house)

print("Three ways that have little in common:\n")
print(explainer.explain(applicant, want="good", n=3, criteria=[Diversity("iterate", distance=0.5)]))

print("\nOne that does not stand on the edge:\n")
print(explainer.explain(applicant, want="good", criteria=[Robustness(radius=0.02)]))

print("\nOne that the same model, trained twice more on other samples, agrees with:\n")
samples = [X.sample(frac=1, replace=True, random_state=seed) for seed in (1, 2)]
others = [clone(model).fit(sample, y[sample.index]) for sample in samples]
print(explainer.explain(applicant, want="good", criteria=[Robustness(models=others)]))

print("\nOne in which borrowing 1,000 marks less means four months less:\n")
law = Causality({"duration": Cause(["credit_amount"], coefficients={"credit_amount": 0.004})})
print(explainer.explain(applicant, want="good", criteria=[law]))
