"""Linear algebra is imported with the first kernel that needs it, and not before."""

import subprocess
import sys

CODE = """\
import sys
import numpy as np
from hopforge.model.kernel.compile import kernel

@kernel
def product(a, b):
    return a @ b

@kernel
def twice(a):
    return a + a

numbers = np.arange(9.0).reshape(3, 3)
assert (twice(numbers) == 2 * numbers).all()
print("scipy.linalg" in sys.modules)
assert (product(numbers, numbers.T.copy()) == numbers @ numbers.T).all()
print("scipy.linalg" in sys.modules)
"""


def test_a_kernel_that_multiplies_matrices_imports_it() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]
