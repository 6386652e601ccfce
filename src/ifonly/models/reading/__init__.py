"""Reading: the columns an estimator receives, as functions of the canonical vector; thresholds pulled back through them."""
