"""The paper's German Credit study: one refused applicant, and criteria added step by step."""

from ifonly.studies import german_study
from ifonly.studies.figure import draw_effect

study = german_study()
print(study)

print("\nPart F: the smaller the loan, the shorter it runs, by the learned law.")
for answer in study["F"]:
    amount, duration = answer.row[["credit_amount", "duration"]].iloc[0]
    print(f"  {amount:7,.0f} DM  {duration:5.2f} months")

draw_effect(path="manifold.png")
print("\nmanifold.png shows, for another applicant, what the hull of part E is good for.")
