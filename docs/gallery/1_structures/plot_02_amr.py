"""
What is meant twice is one node of a meaning graph
==================================================

*The keeper wanted to light the lamp that he had mended.* The keeper wants, lights and mends: one node with three
arrows to it. No order of words is left, but *keeper* is one step from all three.
"""

import structpe
from structpe.encodings import UndirectedDistance
from structpe.formats import amr

meaning = amr.graph("""
(w / want-01
   :ARG0 (k / keeper)
   :ARG1 (l / light-01
      :ARG0 k
      :ARG1 (m / lamp
         :ARG1-of (d / mend-01
            :ARG0 k))))
""")
place = meaning.nodes.index("keeper")
print("steps from keeper:", *UndirectedDistance().one(meaning).pairs()[place])

picture = structpe.show(meaning, [UndirectedDistance()])
picture.set_label(
    "A graph of five concepts: want-01, light-01 and mend-01 each have an arrow ARG0 to the one node keeper; beside "
    "it, a map of the steps between all pairs, with 1 from keeper to the three verbs."
)
