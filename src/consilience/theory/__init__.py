"""What the paper's theory says about a network and a model, in closed form."""

from consilience.theory.centrality import is_reversible, lambda_max, stationary
from consilience.theory.changing import Realised, mixing_window, mixing_windows, realised, realised_at
from consilience.theory.counted import counted_by_sites, counted_by_tracking, learnt_at
from consilience.theory.information import finite_information, gaussian_information, hardest_direction
from consilience.theory.mixing import deviation, lemma_1, mean_log_ratio, mean_log_ratio_limit
from consilience.theory.rate import Rate, certain_sample_size, log_ratio_bound, rate, sample_size, wrong_hypotheses

__all__ = [
    "Rate",
    "Realised",
    "certain_sample_size",
    "counted_by_sites",
    "counted_by_tracking",
    "deviation",
    "finite_information",
    "gaussian_information",
    "hardest_direction",
    "is_reversible",
    "lambda_max",
    "learnt_at",
    "lemma_1",
    "log_ratio_bound",
    "mean_log_ratio",
    "mean_log_ratio_limit",
    "mixing_window",
    "mixing_windows",
    "rate",
    "realised",
    "realised_at",
    "sample_size",
    "stationary",
    "wrong_hypotheses",
]
