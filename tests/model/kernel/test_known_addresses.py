"""Functions that kernels are given remember where their machine code begins."""

from numba import int64, njit, types

from hopforge.model.kernel.compile import c_function, entry, kernel

SIGNATURE = int64(int64)


@entry(int64(types.FunctionType(SIGNATURE), int64))
def apply(function, number):
    return function(number)


@kernel(SIGNATURE)
def twice(number):
    return 2 * number


def thrice(number):
    return 3 * number


def test_each_function_is_looked_up_once_and_gives_its_own_answer():
    callback = c_function(SIGNATURE, thrice)
    for number in range(5):
        assert apply(twice, number) == 2 * number
        assert apply(callback, number) == 3 * number
    for function in (twice, callback):
        assert len(vars(function)["_known_addresses"]) == 2  # for C and for numba


def test_a_function_of_numba_without_a_signature_of_its_own():
    square = njit(lambda x: x * x)
    assert [apply(square, number) for number in (3, 4, 3)] == [9, 16, 9]
    assert len(vars(square)["_known_addresses"]) == 2
