"""The kernels of :mod:`structpe.attention.triton`, in Triton; imported when attention is first computed by them.

A program computes one block of queries, or of keys, of one structure and head, and goes through the blocks of the other
side. The backward kernels compute the scores again. No two programs write the same number, so results do not depend on
the order in which they run.

In signatures, N queries and M keys; ``STRUCTURES`` and ``HEADS`` count both; C and D are widths of queries and values,
powers of two. ``pairs`` are the table, the index, the bias and the mask; ``strides`` those of each by structure,
head, query and key, 0 where it broadcasts. What there is of them is said by ``TABLE``, ``BIAS`` and ``MASK``.
"""

import triton
import triton.language as tl

__all__ = ["backward_bias", "backward_keys", "backward_queries", "forward"]


@triton.jit
def _scores(
    q, k, i, j, b, h, N, M, scale, pairs, strides,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The scores of queries i and keys j, -inf where a pair does not attend, and the row of each pair in the table."""
    table, index, bias, mask = pairs
    (table_b, table_h), (index_b, index_n, index_m), (bias_b, bias_h, bias_n, bias_m), of_mask = strides
    mask_b, mask_h, mask_n, mask_m = of_mask
    s = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    valid = (i < N)[:, None] & (j < M)[None, :]
    row = tl.zeros([q.shape[0], k.shape[0]], dtype=tl.int32)
    # Products of places and strides pass 2^31 at some 46,000 units.
    wide_i, wide_j = i.to(tl.int64)[:, None], j.to(tl.int64)[None, :]
    if TABLE:
        row = tl.load(index + b * index_b + wide_i * index_n + wide_j * index_m, mask=valid, other=0).to(tl.int32)
        s += tl.load(table + b * table_b + h * table_h + row, mask=valid, other=0.0)
    if BIAS:
        s += tl.load(bias + b * bias_b + h * bias_h + wide_i * bias_n + wide_j * bias_m, mask=valid, other=0.0)
    if MASK:
        allowed = tl.load(mask + b * mask_b + h * mask_h + wide_i * mask_n + wide_j * mask_m, mask=valid, other=0)
        valid = valid & (allowed != 0)
    if CAUSAL:
        valid = valid & (j[None, :] <= i[:, None] + M - N)
    return tl.where(valid, s, float("-inf")), row


@triton.jit
def _gradients(
    q, k, v, grad, lse, delta, i, j, b, h, N, M, scale, pairs, strides,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Weights w_ij = exp(s_ij - lse_i), gradients of scores w_ij (grad_i.v_j - delta_i), and the row of each pair.

    All tensors are blocks; a query that attends to nothing, and one that is not there, has lse inf and weights 0.
    """
    s, row = _scores(q, k, i, j, b, h, N, M, scale, pairs, strides, TABLE, BIAS, MASK, CAUSAL, PRECISION)
    weights = tl.exp(s - lse[:, None])
    of_weights = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    return weights, weights * (of_weights - delta[:, None]), row


@triton.jit
def _rows(x, at, SIZE, WIDTH, row_stride, column, PADDED: tl.constexpr):
    """The rows ``at`` of a matrix, padded with zeros to PADDED columns."""
    inside = (at < SIZE)[:, None] & (column < WIDTH)[None, :]
    return tl.load(x + at.to(tl.int64)[:, None] * row_stride + column[None, :], mask=inside, other=0.0)


@triton.jit
def forward(
    q, k, v, out, lse, pairs, strides,
    HEADS, N, M, WIDTH, VALUES, scale,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Output, and log sum_j exp(s_ij) of each query: inf for one that attends to nothing, whose output is 0.

    Softmax goes through the keys once (Milakov and Gimelshein 2018; Dao et al. 2022): sums are relative to the largest
    score until then.
    """
    flat = tl.program_id(1).to(tl.int64)
    b, h = flat // HEADS, flat % HEADS
    i = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    c, d = tl.arange(0, C), tl.arange(0, D)
    q_block = _rows(q + flat * N * WIDTH, i, N, WIDTH, WIDTH, c, C)
    largest = tl.full([QUERIES], float("-inf"), dtype=tl.float32)
    total = tl.zeros([QUERIES], dtype=tl.float32)
    mixed = tl.zeros([QUERIES, D], dtype=tl.float32)
    end = M
    if CAUSAL:
        end = tl.minimum(M, tl.maximum(0, (tl.program_id(0) + 1) * QUERIES + M - N))
    for start in range(0, end, KEYS):
        j = start + tl.arange(0, KEYS)
        k_block = _rows(k + flat * M * WIDTH, j, M, WIDTH, WIDTH, c, C)
        s, _ = _scores(
            q_block, k_block, i, j, b, h, N, M, scale, pairs, strides, TABLE, BIAS, MASK, CAUSAL, PRECISION
        )  # fmt: skip
        new = tl.maximum(largest, tl.max(s, 1))
        finite = tl.where(new == float("-inf"), 0.0, new)  # -inf - -inf is NaN
        weights = tl.exp(s - finite[:, None])
        shrunk = tl.exp(largest - finite)
        total = total * shrunk + tl.sum(weights, 1)
        v_block = _rows(v + flat * M * VALUES, j, M, VALUES, VALUES, d, D)
        mixed = mixed * shrunk[:, None] + tl.dot(weights.to(v_block.dtype), v_block, input_precision=PRECISION)
        largest = new
    some = total > 0
    safe = tl.where(some, total, 1.0)
    inside = (i < N)[:, None] & (d < VALUES)[None, :]
    places = i.to(tl.int64)[:, None] * VALUES + d[None, :]
    tl.store(out + flat * N * VALUES + places, (mixed / safe[:, None]).to(out.dtype.element_ty), mask=inside)
    tl.store(lse + flat * N + i, tl.where(some, largest + tl.log(safe), float("inf")), mask=i < N)


@triton.jit
def backward_keys(
    q, k, v, grad, lse, delta, grad_k, grad_v, pairs, strides,
    HEADS, N, M, WIDTH, VALUES, scale,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and of its values."""
    flat = tl.program_id(1).to(tl.int64)
    b, h = flat // HEADS, flat % HEADS
    j = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    c, d = tl.arange(0, C), tl.arange(0, D)
    k_block = _rows(k + flat * M * WIDTH, j, M, WIDTH, WIDTH, c, C)
    v_block = _rows(v + flat * M * VALUES, j, M, VALUES, VALUES, d, D)
    of_keys, of_values = tl.zeros([KEYS, C], dtype=tl.float32), tl.zeros([KEYS, D], dtype=tl.float32)
    first = 0
    if CAUSAL:
        first = tl.maximum(0, tl.program_id(0) * KEYS - M + N) // QUERIES * QUERIES
    for start in range(first, N, QUERIES):
        i = start + tl.arange(0, QUERIES)
        q_block = _rows(q + flat * N * WIDTH, i, N, WIDTH, WIDTH, c, C)
        g_block = _rows(grad + flat * N * VALUES, i, N, VALUES, VALUES, d, D)
        log_sum = tl.load(lse + flat * N + i, mask=i < N, other=float("inf"))
        shift = tl.load(delta + flat * N + i, mask=i < N, other=0.0)
        weights, of_scores, _ = _gradients(
            q_block, k_block, v_block, g_block, log_sum, shift, i, j, b, h, N, M, scale, pairs, strides,
            TABLE, BIAS, MASK, CAUSAL, PRECISION,
        )  # fmt: skip
        of_values += tl.dot(tl.trans(weights.to(g_block.dtype)), g_block, input_precision=PRECISION)
        of_keys += tl.dot(tl.trans(of_scores.to(q_block.dtype)), q_block, input_precision=PRECISION)
    rows = j.to(tl.int64)[:, None]
    inside = (j < M)[:, None]
    to = grad_k + flat * M * WIDTH + rows * WIDTH + c[None, :]
    tl.store(to, (of_keys * scale).to(grad_k.dtype.element_ty), mask=inside & (c < WIDTH)[None, :])
    to = grad_v + flat * M * VALUES + rows * VALUES + d[None, :]
    tl.store(to, of_values.to(grad_v.dtype.element_ty), mask=inside & (d < VALUES)[None, :])


@triton.jit
def backward_queries(
    q, k, v, grad, lse, delta, grad_q, sums, pairs, strides,
    HEADS, N, M, WIDTH, VALUES, scale, count,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, C: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of queries, and its part of the gradients of ROWS rows of the table.

    With ROWS = 0 the table has no gradient. A third axis of programs has the further rows; only its first writes
    gradients of queries.
    """
    flat = tl.program_id(1).to(tl.int64)
    b, h = flat // HEADS, flat % HEADS
    i = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    c, d = tl.arange(0, C), tl.arange(0, D)
    q_block = _rows(q + flat * N * WIDTH, i, N, WIDTH, WIDTH, c, C)
    g_block = _rows(grad + flat * N * VALUES, i, N, VALUES, VALUES, d, D)
    log_sum = tl.load(lse + flat * N + i, mask=i < N, other=float("inf"))
    shift = tl.load(delta + flat * N + i, mask=i < N, other=0.0)
    of_queries = tl.zeros([QUERIES, C], dtype=tl.float32)
    if ROWS:
        numbers = tl.arange(0, ROWS)
        of_rows = tl.zeros([QUERIES, ROWS], dtype=tl.float32)
    end = M
    if CAUSAL:
        end = tl.minimum(M, tl.maximum(0, (tl.program_id(0) + 1) * QUERIES + M - N))
    for start in range(0, end, KEYS):
        j = start + tl.arange(0, KEYS)
        k_block = _rows(k + flat * M * WIDTH, j, M, WIDTH, WIDTH, c, C)
        v_block = _rows(v + flat * M * VALUES, j, M, VALUES, VALUES, d, D)
        _, of_scores, row = _gradients(
            q_block, k_block, v_block, g_block, log_sum, shift, i, j, b, h, N, M, scale, pairs, strides,
            TABLE, BIAS, MASK, CAUSAL, PRECISION,
        )  # fmt: skip
        of_queries += tl.dot(of_scores.to(k_block.dtype), k_block, input_precision=PRECISION)
        if ROWS:
            # Row by row: atomic sums would be in any order, and a product with zeros and ones is no cheaper.
            base = tl.program_id(2) * ROWS
            for number in range(0, tl.minimum(ROWS, count - base)):
                sums_of_row = tl.sum(tl.where(row == base + number, of_scores, 0.0), 1)
                of_rows += tl.where(numbers[None, :] == number, sums_of_row[:, None], 0.0)
    if tl.program_id(2) == 0:
        to = grad_q + flat * N * WIDTH + i.to(tl.int64)[:, None] * WIDTH + c[None, :]
        inside = (i < N)[:, None] & (c < WIDTH)[None, :]
        tl.store(to, (of_queries * scale).to(grad_q.dtype.element_ty), mask=inside)
    if ROWS:
        base = tl.program_id(2) * ROWS
        to = sums + (flat * tl.num_programs(0) + tl.program_id(0)) * count + base + numbers
        tl.store(to, tl.sum(of_rows, 0), mask=base + numbers < count)


@triton.jit
def backward_bias(
    q, k, v, grad, lse, delta, grad_bias, pairs, strides,
    STRUCTURES, HEADS, N, M, WIDTH, VALUES, scale,
    TABLE: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, C: tl.constexpr, D: tl.constexpr,
    ONE_STRUCTURE: tl.constexpr, ONE_HEAD: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of a bias that is a tensor, summed over the structures and heads that share it."""
    i = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    j = tl.program_id(1) * KEYS + tl.arange(0, KEYS)
    c, d = tl.arange(0, C), tl.arange(0, D)
    which = tl.program_id(2).to(tl.int64)
    heads_of_bias = 1 if ONE_HEAD else HEADS
    first_b, first_h = which // heads_of_bias, which % heads_of_bias
    of_bias = tl.zeros([QUERIES, KEYS], dtype=tl.float32)
    for number in range(0, (STRUCTURES if ONE_STRUCTURE else 1) * (HEADS if ONE_HEAD else 1)):
        b = number // (HEADS if ONE_HEAD else 1) if ONE_STRUCTURE else first_b
        h = number % HEADS if ONE_HEAD else first_h
        flat = (b * HEADS + h).to(tl.int64)
        q_block = _rows(q + flat * N * WIDTH, i, N, WIDTH, WIDTH, c, C)
        k_block = _rows(k + flat * M * WIDTH, j, M, WIDTH, WIDTH, c, C)
        g_block = _rows(grad + flat * N * VALUES, i, N, VALUES, VALUES, d, D)
        v_block = _rows(v + flat * M * VALUES, j, M, VALUES, VALUES, d, D)
        log_sum = tl.load(lse + flat * N + i, mask=i < N, other=float("inf"))
        shift = tl.load(delta + flat * N + i, mask=i < N, other=0.0)
        _, of_scores, _ = _gradients(
            q_block, k_block, v_block, g_block, log_sum, shift, i, j, b, h, N, M, scale, pairs, strides,
            TABLE, BIAS, MASK, CAUSAL, PRECISION,
        )  # fmt: skip
        of_bias += of_scores
    to = grad_bias + (which * N + i.to(tl.int64)[:, None]) * M + j[None, :]
    tl.store(to, of_bias, mask=(i < N)[:, None] & (j < M)[None, :])
