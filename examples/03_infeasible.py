"""Ask for too much, and learn exactly how much too much."""

from ifonly import Actionability, Explainer, Infeasible, Sparsity, Target
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

credit = german_credit()
model = credit_model("linear", credit.frame, credit.target)
applicant = credit.frame.iloc[11]
house = [Actionability(frozen=["personal_status", "foreign_worker", "purpose", "age"])]
explainer = Explainer(model, credit.frame, schema=credit.schema, criteria=house)

wish = Target("good", probability=0.75)
demands = [
    Sparsity(at_most=2),
    Actionability(frozen=["checking_status"], ranges={"duration": (24, 60)}),
]
try:
    print(explainer.explain(applicant, want=wish, criteria=demands))
except Infeasible as impossible:
    print(impossible)
    print("\nThe same as values:")
    for way in impossible.relaxations:
        print(f"  {way.demand:<45} {way.change}")

print("\nLoosened, there is an answer:\n")
print(explainer.explain(applicant, want="good", criteria=[Sparsity(at_most=3), demands[1]]))
