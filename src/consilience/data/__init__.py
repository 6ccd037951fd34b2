"""Data: where it comes from, and who holds what. Past the partition, raw data does not move."""

from consilience.data.datasets import Dataset, load_dataset
from consilience.data.partition import Partition, by_feature, by_label, dirichlet, from_file, iid, shards, skewed

__all__ = [
    "Dataset",
    "Partition",
    "by_feature",
    "by_label",
    "dirichlet",
    "from_file",
    "iid",
    "load_dataset",
    "shards",
    "skewed",
]
