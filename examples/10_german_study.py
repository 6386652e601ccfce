"""The paper's German Credit study: one refused applicant, and criteria added step by step."""

from ifonly.studies import german_study
from ifonly.studies.figure import draw_effect

study = german_study()
print(study)

amount, duration = study["F"][-1].row[["credit_amount", "duration"]].iloc[0]
print(
    f"\nPart F, last answer: with {amount:,.0f} DM the loan runs {duration:.1f} months, because the one causes the other."
)

draw_effect(path="manifold.png")
print("\nmanifold.png shows, for another applicant, what the hull of part E is good for.")
