"""Ridge regression of the statistic: closed form, exact leave-one-out, mergeable moments."""
