"""One refused applicant, one question, one proven answer."""

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer
from ifonly.datasets import german_credit

credit = german_credit()
X, y = credit.frame, credit.target
model = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder=StandardScaler()
    ),
    LogisticRegression(solver="newton-cholesky"),
).fit(X, y)

explainer = Explainer(model, X, schema=credit.schema)
answer = explainer.explain(X.iloc[11], want="good")
print(answer)

# The answer is a row of the same frame, and the model has already said yes to it.
print()
print("the model says:", model.predict(answer.frame())[0])
certificate = answer[0].certificate
print(f"it costs {certificate.objective:.4f}, and no answer costs less than {certificate.bound:.4f}")
