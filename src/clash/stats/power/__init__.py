"""How many items, runs or judges a question needs, and what a given number can show."""
