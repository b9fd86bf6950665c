"""NPB CG, conjugate gradient: sums across the rows of a process grid, then an exchange with the transposed process."""

from hopforge.model.apps.calls import DOUBLE, LOGICAL, Calls

#: class → order of the matrix, nonzeros per row of its generator, iterations
SIZES = {
    "S": (1400, 7, 15), "W": (7000, 8, 15), "A": (14000, 11, 15), "B": (75000, 13, 75), "C": (150000, 15, 75),
    "D": (1500000, 21, 100), "E": (9000000, 26, 100),
}
INNER = 25


def grid(ranks: int) -> tuple[int, int]:
    """Return rows and columns of the process grid: as many, or twice as many columns."""
    power = ranks.bit_length() - 1
    return 1 << power // 2, 1 << (power + 1) // 2


def legal(problem: str, ranks: int) -> bool:
    """Tell whether the benchmark runs on so many ranks: a power of two, with a row of the matrix for each."""
    return ranks >= 1 and ranks & (ranks - 1) == 0 and grid(ranks)[1] <= SIZES[problem][0]


def _extent(size: int, parts: int, part: int) -> int:
    """Return the length of one of `parts` parts of `size`, the first ones larger by one."""
    return size // parts + (part < size % parts)


def write(calls: Calls, problem: str, ranks: int) -> None:
    """Append the calls of one rank."""
    order, nonzero, iterations = SIZES[problem]
    rows, columns = grid(ranks)
    row, column = divmod(calls.rank, columns)
    odd = calls.rank % 2
    height = _extent(order, rows, row)
    if rows == columns:
        width, piece = _extent(order, columns, column), height
        transposed = calls.rank % rows * rows + calls.rank // rows
    else:
        piece = height // 2 if odd else (height + 1) // 2
        if order % columns == 0:
            width = order // columns
        else:
            pair = _extent(order, columns // 2, column // 2)
            width = pair // 2 if odd else (pair - 1) // 2 + 1
        transposed = 2 * (calls.rank // 2 % rows * rows + calls.rank // 2 // rows) + odd
    partners, half = [], columns
    while half > 1:
        partners.append(row * columns + (column + half // 2) % half + column // half * half)
        half //= 2
    row_flops = 2 * order * nonzero * (nonzero + 1) / ranks  # a product with the matrix (cg.f: Mflops)
    vector_flops = 2 * order / ranks

    def swap(part: Calls, partner: int, tag: int, sent: int, received: int) -> None:
        part.irecv(partner, tag, received)
        part.send(partner, tag, sent)
        part.wait_received(partner, tag)

    def add_up(part: Calls, values: int) -> None:
        for tag, partner in enumerate(partners, start=1):
            swap(part, partner, tag, values, values)

    def multiply(part: Calls) -> None:
        part.compute(row_flops)
        for tag in range(len(partners), 0, -1):
            # with twice as many columns the first exchange halves the vector
            sent = height - piece if rows != columns and tag == len(partners) else piece
            swap(part, partners[tag - 1], tag, sent, piece)
        if partners:
            swap(part, transposed, 1, piece, width)

    inner = calls.part()
    multiply(inner)
    inner.compute(vector_flops)
    add_up(inner, 1)
    inner.compute(3 * vector_flops)
    add_up(inner, 1)
    inner.compute(vector_flops)
    step = calls.part()
    step.compute(vector_flops)
    add_up(step, 1)
    step.extend(inner, INNER)
    multiply(step)
    step.compute(2 * vector_flops)
    add_up(step, 1)
    step.compute(3 * vector_flops)
    add_up(step, 2)

    calls.bcast(1, LOGICAL)
    calls.extend(step)
    calls.barrier()
    calls.extend(step, calls.iterations(iterations))
    calls.reduce(1, DOUBLE)
