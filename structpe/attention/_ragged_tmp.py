from structpe.attention.base import attend
from structpe.terms import Terms


def attend_ragged(q, k, v, layout, terms, kernel="auto", dropout=0.0):
    out = []
    for i, (a, b, c) in enumerate(zip(*(layout.padded(x.contiguous()) for x in (q, k, v)))):
        a, b, c = (x.transpose(1, 2) for x in (a, b, c))
        out.append(attend(a, b, c, terms[i] + Terms(mask=layout.mask(i)), kernel, dropout).transpose(1, 2).contiguous())
    return layout.flat(out)
