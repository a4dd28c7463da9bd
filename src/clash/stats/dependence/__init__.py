"""Whether judges err together, how much, and what that leaves of the panel.

Everything here is given the truth or an estimate of it. Without labels, what all judges get wrong
together is indistinguishable from the truth: residual correlations come out too small, and
effective numbers too large. Only labels show the rest.
"""
