"""A benchmark: several methods over one labelled set, in one run that resumes, with metrics and paired tests."""
