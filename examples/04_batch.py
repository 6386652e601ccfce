"""Many rows on all cores: a status for each, and tables for all."""

from ifonly import Actionability, Explainer, Sparsity
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

credit = german_credit()
X = credit.frame
model = credit_model("linear", X, credit.target)
house = [
    Sparsity(price=0.1, at_most=2),
    Actionability(frozen=["personal_status", "foreign_worker", "purpose", "age", "checking_status"]),
]
explainer = Explainer(model, X, schema=credit.schema, criteria=house)

refused = X[model.predict(X) == "bad"].head(12)
answers = explainer.explain_all(refused, want="good", n_jobs=2)
print(answers)

print("\nWhat would change, row by row:")
print(answers.changes().head(8).to_string(index=False))

print("\nThe paper's measures, averaged:")
measures = answers.metrics()[["validity", "categorical_proximity", "continuous_proximity", "sparsity"]]
print(measures.mean().round(3).to_string())

# Every answer, in the columns and dtypes of the data, ready for predict or for a file.
everything = answers.frame()
assert (model.predict(everything) == "good").all()
everything.to_csv("answers.csv")
