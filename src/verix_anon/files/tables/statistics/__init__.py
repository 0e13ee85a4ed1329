"""Files of SPSS, Stata and SAS; the package is the extra `statistics`."""
