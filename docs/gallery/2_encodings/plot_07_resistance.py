"""
Each further way lowers the resistance, and none the distance
=============================================================

Two nodes are joined by one, two, three ... ways of two edges each. Their distance is 2, however many ways there are.
The resistance between them, with edges as wires of 1 ohm, is 2 divided by the number of ways: it says how *well* they
are joined.
"""

import matplotlib.pyplot as plt

import structpe
from structpe.encodings import Resistance, UndirectedDistance

ways = range(1, 9)
graphs = []
for count in ways:
    edges = [edge for middle in range(2, count + 2) for edge in ((0, middle), (middle, 1))]
    graphs.append(structpe.Structure(("from", "to", *"abcdefgh"[:count]), edges, directed=False))

figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
figure.set_label("Two lines over one to eight ways: the distance stays at 2, the resistance falls from 2 to a quarter.")
axis.plot(ways, [UndirectedDistance().one(graph).pairs()[0, 1] for graph in graphs], "o-", label="distance, edges")
axis.plot(ways, [Resistance().one(graph).pairs()[0, 1] for graph in graphs], "s-", label="resistance, ohms")
axis.set(xlabel="ways between the two nodes", ylim=(0, 2.2))
axis.legend(loc="center right")
