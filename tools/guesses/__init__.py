"""How good the guesses of `verix-anon init` are: truths written by hand, and what is guessed.

truth.py   what the columns of the public tables are
own.py     tables made here, as a hospital, a firm, a bank and a survey have them, with their truths
"""
