"""
A Levi graph makes a node of each relation
==========================================

Models of nodes cannot read what is written at edges. In the Levi graph each edge is a node between its two ends, so
that the relation is read like any other node, and distances double.
"""

import structpe
from structpe.encodings import UndirectedDistance

facts = structpe.triples([("Moon_Tower", "standsOn", "Skell"), ("Skell", "partOf", "Outer_Isles")])
levi = structpe.levi(facts)
for graph in (facts, levi):
    print(graph.nodes, "farthest:", UndirectedDistance().one(graph).pairs().max())

before = structpe.show(facts)
before.set_label("Three entities in a row, joined by two arrows with the names of relations.")

# %%
# The same two facts as a Levi graph: five nodes, and arrows without names.

after = structpe.show(levi)
after.set_label("Five nodes in a row: the three entities and, between them, the two relations as nodes of their own.")
