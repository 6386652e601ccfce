"""A forest: what the search hears on its way, and what a short time limit leaves of the proof."""

import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer, NotProvenOptimal, OutOfTime, Schema
from ifonly.events import Built, Event, Finished, Incumbent

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)

# Measurements are read as they are written down; an answer with more digits would not help anybody.
decimals = {column: max(len(f"{value:.10g}".partition(".")[2]) for value in X[column]) for column in X}
schema = Schema.infer(X, precision=decimals)
explainer = Explainer(forest, X, schema=schema)
patient = X[forest.predict(X) == "malignant"].iloc[[5]]


def tell(event: Event) -> None:
    if isinstance(event, Built):
        print(f"  a program of {event.columns} columns and {event.rows} rows")
    elif isinstance(event, Incumbent):
        print(f"  an answer that costs {event.objective:.4f}")
    elif isinstance(event, Finished):
        print(f"  {event.status}")


print("The search:")
answer = explainer.explain(patient, want="benign", on_event=tell)
print()
print(answer)

print("\nWith hardly any time, a quick answer is confirmed all the same, and says what is known of it:\n")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotProvenOptimal)
        hasty = explainer.explain(patient, want="benign", time_limit=0.03)
    print(hasty)
    best, quick = answer[0].certificate, hasty[0].certificate
    print(f"\nIt costs {quick.objective:.4f}; the best costs {best.objective:.4f}.")
except OutOfTime as late:  # on a slow machine not even a quick one is there
    print(late)
