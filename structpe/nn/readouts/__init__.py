"""What is read out of the vectors of nodes, to predict graphs, nodes or pairs: one readout per file."""

from structpe.nn.readouts.base import READOUTS, Readout, readout_of

__all__ = ["READOUTS", "Readout", "readout_of"]
