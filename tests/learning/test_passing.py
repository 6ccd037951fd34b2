"""What is learnt without a folder is kept for as long as somebody has it, and leaves nothing behind."""

import gc
from pathlib import Path

from consilience.learning.fit import Temporary


def test_a_passing_folder_goes_with_the_last_who_has_it():
    passing = Temporary()
    place = Path(passing.path)
    (place / "run").mkdir()
    assert place.is_dir()
    del passing
    gc.collect()
    assert not place.exists()
