"""How kernels are compiled, and the small tools that they are made of."""
