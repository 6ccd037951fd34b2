"""Tests and doctests run in float64, on one device of four, and share what they compile and what they draw."""

import ast
import gc
import hashlib
import os
import re
from contextlib import contextmanager
from pathlib import Path

from beartype import beartype
from jaxtyping import _import_hook, jaxtyped

# A function inside a function is made anew at every call; checking its types, too, cost milliseconds each time, which
# was a third of all tests' time. Functions and methods of modules are checked. jaxtyping's own wrapper, which takes a
# tenth of a millisecond at every call, is for those that speak of shapes: around the others it was most of the time of
# peers' tests.
_with_shapes = _import_hook.JaxtypingTransformer.visit_FunctionDef
_kept_as = _import_hook._optimized_cache_from_source
_THIS = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]


def _checked(self, node):
    if any(isinstance(parent, ast.FunctionDef) for parent in self._parents):
        return node
    given = node.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    types = [node.returns, *(argument.annotation for argument in arguments if argument)]
    parts = [part for each in types if each for part in ast.walk(each)]
    shapes = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
    unknown = _not_imported(self._parents[0]) & {part.id for part in parts if isinstance(part, ast.Name)}
    if shapes or unknown:  # jaxtyping passes over names that are not there when it runs
        return _with_shapes(self, node)
    checker = ast.parse("jaxtyping._import_hook.Typechecker.lookup['of us']").body[0].value
    node.decorator_list.append(ast.copy_location(checker, node))
    return node


def _without_shapes(function):
    """Check a function whose types say nothing of shapes, unless one of their names stands for such a type."""
    words = re.findall(r"\w+", " ".join(map(str, function.__annotations__.values())))
    if any("jaxtyping." in repr(function.__globals__.get(word)) for word in set(words)):
        return jaxtyped(typechecker=beartype)(function)
    return beartype(function)


def _not_imported(module):
    """Names that are there for type checkers only."""
    ifs = [each for each in module.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    imports = [each for one in ifs for each in one.body if isinstance(each, ast.Import | ast.ImportFrom)]
    return {name.asname or name.name for each in imports for name in each.names}


def _kept_as_ours(checker, path, debug_override=None):
    """Compiled modules are kept under a name of what is done to them here."""
    return _kept_as(f"{checker}{_THIS}", path, debug_override)


_import_hook.JaxtypingTransformer.visit_FunctionDef = _checked
_import_hook.Typechecker.lookup["of us"] = _without_shapes
_import_hook._optimized_cache_from_source = _kept_as_ours

from consilience.machine.runtime import keep_compiled_programs, use_all_cores  # noqa: E402

# Compiled quickly rather than well: compiling was three quarters of the time of tests that find no compiled programs.
# What users run is compiled for tests that ask for `optimised`, in examples and in the tutorial; see also `children`.
QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}
WELL = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
use_all_cores()
_of_users = os.environ["XLA_FLAGS"]
os.environ["XLA_FLAGS"] = " ".join([_of_users, *(f"--{name}={value}".lower() for name, value in QUICKLY.items())])
keep_compiled_programs(Path(__file__).parent / ".pytest_cache" / "programs")

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.devices()  # XLA reads its flags once
os.environ["XLA_FLAGS"] = _of_users
gc.set_threshold(
    100_000, 20, 20
)  # tracing makes many small objects that live; looking at them took a tenth of the time

settings.register_profile("same", derandomize=True)


collect_ignore = ["tests/soak_atheris.py"]  # a program that needs what only `make soak` installs


def pytest_configure(config):
    """The same examples every time: what a test says does not depend on luck. `make soak` draws others."""
    if config.option.markexpr != "soak":
        settings.load_profile("same")


_save, _pictures = Figure.savefig, {}


def _drawn_once(figure, file, **options):
    """A picture of each name is laid out once: most tests are about numbers, and a layout takes half a second."""
    if file.name in _pictures:
        file.write_bytes(_pictures[file.name])
    else:
        _save(figure, file, **options)
        _pictures[file.name] = file.read_bytes()


Figure.savefig = _drawn_once


@pytest.fixture
def real_figures(monkeypatch):
    """Every picture is drawn."""
    monkeypatch.setattr(Figure, "savefig", _save)


@pytest.fixture(scope="session", autouse=True)
def one_device():
    """Simulations have one device: a program for several takes twice as long to compile, and gives the same numbers.

    That it does is what the tests of engines show; they, and whoever asks for `all_devices`, have four.
    """
    from consilience.engines.simulate import placement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "available", lambda: jax.devices()[:1])
        yield


@pytest.fixture(scope="module")
def all_devices():
    """Simulations have all four devices."""
    from consilience.engines.simulate import placement

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "available", jax.devices)
        yield


_simulations = {}


@pytest.fixture
def simulations_kept(monkeypatch):
    """A run that is played again or carried on has the simulation that it had: for tests of what is written and said.

    That another simulation, in another process, gives the same bytes is what test_killed and test_stopping show.
    """
    from consilience.engines.simulate import Simulation
    from consilience.runs import run

    prepare = run.prepared

    def prepared(config, digest, arms, folder, engine):
        names = {id(arm): name for name, arm in arms.items()}

        def kept(arm, seeds):
            which = digest, names[id(arm)], tuple(seeds)
            if which not in _simulations:
                _simulations[which] = engine(arm, seeds)
            return _simulations[which]

        return prepare(config, digest, arms, folder, kept if engine is Simulation else engine)

    monkeypatch.setattr(run, "prepared", prepared)


@contextmanager
def _compiled_well():
    from consilience.engines.simulate import simulation

    options = simulation.compiler_options() | WELL
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "compiler_options", lambda: options)
        yield


@pytest.fixture
def optimised():
    """Simulations are compiled as users have them: for tests of how different programs round."""
    with _compiled_well():
        yield


@pytest.fixture(scope="module")
def all_optimised():
    """The same for a module in which playing takes longer than compiling."""
    with _compiled_well():
        yield
