"""Test-retest agreement: of runs, of both orders of a pair, of ranking cycles."""
