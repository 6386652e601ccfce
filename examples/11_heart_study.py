"""The paper's Heart study: what would have made a network of 50 rectifiers see a disease in a healthy patient."""

from ifonly.studies import heart_study

print(heart_study())
