"""The engine `simulate`: all agents of a network in one jitted program, spread over all cores of one host or many."""

from consilience.engines.simulate.simulation import Simulation

__all__ = ["Simulation"]
