"""A fuzzer of everything a user can hand over; every case is a pure function of (seed, number)."""
