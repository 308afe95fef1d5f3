"""
Facts about one thing meet in one node
======================================

Four facts of a small knowledge graph, as triples of subject, relation and object. *Skell* is in three of them.
"""

import structpe
from structpe.encodings import UndirectedDistance

facts = structpe.triples(
    [
        ("Skell", "partOf", "Outer_Isles"),
        ("Moon_Tower", "standsOn", "Skell"),
        ("Nils_Tarrow", "bornOn", "Skell"),
        ("Nils_Tarrow", "keeps", "Moon_Tower"),
    ]
)
print(len(facts.nodes), "nodes,", len(facts.edges), "edges")

picture = structpe.show(facts, [UndirectedDistance()])
picture.set_label(
    "A graph of four entities and four named relations; Skell is joined to Outer Isles, Moon Tower and Nils Tarrow. "
    "Beside it, a map of the steps between all pairs."
)
