"""Other wishes: a probability, one of several classes, a number, and the exact program behind it all."""

from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity, Schema, Target
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

credit = german_credit()
model = credit_model("linear", credit.frame, credit.target)
explainer = Explainer(model, credit.frame, schema=credit.schema)
for probability in (0.5, 0.7, 0.9):
    answer = explainer.explain(credit.frame.iloc[11], want=Target("good", probability=probability))
    changes = ", ".join(f"{c.feature} -> {c.after}" for c in answer[0].changes)
    print(f"good with probability {probability}: {changes}")

print("\nOne of three classes, by a tree; petals are measured to a millimetre:\n")
flowers = load_iris(as_frame=True)
X = flowers.data
tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, flowers.target_names[flowers.target])
schema = Schema.infer(X, precision=dict.fromkeys(X, 1))
print(Explainer(tree, X, schema=schema).explain(X.iloc[60], want="virginica"))

print("\nA number, by gradient boosting: a prognosis of 120 or less, by body mass index and blood values:\n")
patients = load_diabetes(as_frame=True, scaled=False)
X = patients.data
boosting = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, patients.target)
schema = Schema.infer(X, categorical=["sex"], precision={"bmi": 1, "bp": 2, "s4": 2, "s5": 4})
explainer = Explainer(boosting, X, schema=schema, criteria=[Proximity("l1", scale="std")])
print(explainer.explain(X.iloc[9], want=Target(at_most=120)))

program = explainer.problem(X.iloc[9], want=Target(at_most=120))
arrays = program.arrays()
program.write("question.lp")
print(f"\nThe whole question as a program: {arrays.n_columns} columns, {arrays.n_rows} rows (see question.lp).")
