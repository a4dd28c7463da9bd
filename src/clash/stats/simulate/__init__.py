"""Panels of judges with a known truth: samplers, and exact risks where they can be had.

``independent`` judges that err alone, ``ising`` judges of any couplings, ``curie_weiss`` and
``latent_factor``, the two mechanisms for which Balasubramanian, Podkopaev and Kasiviswanathan
(2026), *Dependence-aware label aggregation for LLM-as-a-judge via Ising models*, prove that
assuming independence costs accuracy whatever the number of judges.
"""
