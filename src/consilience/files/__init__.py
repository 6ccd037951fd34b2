"""Files: whole or not there, with checksums; those that are handed over, and what is wrong with them."""
