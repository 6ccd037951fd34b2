"""Hold engine and theory to the reference for long: `python tests/soak_reference.py --cases 5000`.

Every rig is a program of its own and runs its cases in order, so a finding is reproduced by its rig: `--rig 12`.
"""

import argparse
import os
import sys
import traceback
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

from consilience.machine.runtime import keep_compiled_programs

keep_compiled_programs(Path(__file__).parents[1] / ".pytest_cache" / "programs")

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

from rigs import Rig  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=5000, help="how many in all")
    parser.add_argument("--each", type=int, default=100, help="how many for one program")
    parser.add_argument("--first", type=int, default=0, help="the first rig")
    parser.add_argument("--rig", type=int, help="this rig alone")
    options = parser.parse_args()
    count = 1 if options.rig is not None else -(-options.cases // options.each)
    first = options.rig if options.rig is not None else options.first
    done, findings = 0, []
    for number in range(first, first + count):
        rig = Rig(number)
        for case in range(min(options.each, options.cases - done)):
            done += 1
            try:
                rig.run(number * options.each + case)
            except Exception:
                findings.append(f"--rig {number} --each {options.each}, case {case}")
                print(f"FOUND in {rig.name}, case {case}\n{traceback.format_exc(limit=-4)}", flush=True)
                break  # what comes after it on the same program may only be its consequence
        print(f"{done} cases, {len(findings)} findings; {rig.name}", flush=True)
        jax.clear_caches()  # the programs of this rig are not needed again
    for finding in findings:
        print(f"to reproduce: python tests/soak_reference.py {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
