"""Equal parts of a design, elaborated once."""

from collections.abc import Hashable

from amaranth.hdl import Elaboratable, Module, Value
from amaranth.lib.wiring import Component

__all__ = ["place", "shared"]


def shared(component: Component, platform: object, *key: Hashable) -> Elaboratable:
    """Return what stands for `component` inside its parent.

    In a simulation that is the component itself. A platform with a method ``instance(component, key)``
    (`hopforge.gen.verilog.shared_modules`) makes one module of all components of the same class and `key`, and gives an
    instance of it: a router of 64 ports has thousands of arbiters, of which few differ.

    The parent may use the ports of a shared component only, never signals inside.

    Parameters
    ----------
    component : Component
        The part, just made.
    platform : object
        What ``elaborate`` was given.
    *key : hashable
        Everything that makes a component of its class what it is.
    """
    instance = getattr(platform, "instance", None)
    if instance is None:
        return component
    made: Elaboratable = instance(component, key)
    return made


def place(m: Module, name: str, component: Component, platform: object, *key: Hashable, **inputs: Value) -> None:
    """Put what stands for `component` into `m`, with values at its inputs.

    The same as `shared` and an assignment of every input, but an instance is connected to the values themselves: an
    assignment of its own takes Amaranth as long for each bit as the rest of a wire.

    Parameters
    ----------
    m : Module
        The parent.
    name : str
        Name of the submodule.
    component, platform, *key
        As for `shared`.
    **inputs : Value
        By name of the port (members of an array: ``NAME__NUMBER``), as wide as it; other inputs are assigned by
        the parent.

    Raises
    ------
    ValueError
        A value that is not as wide as the port, a port that does not exist.
    """
    ports = {"__".join(map(str, path)): Value.cast(port) for path, _, port in component.signature.flatten(component)}
    for port, value in inputs.items():
        if port not in ports:
            raise ValueError(f"{name} has no port {port}; there are {', '.join(ports)}")
        if len(value) != len(ports[port]):
            raise ValueError(f"{name}.{port} must have {len(ports[port])} bits, not {len(value)}")
    instance = getattr(platform, "instance", None)
    made = component if instance is None else instance(component, key, inputs)
    m.submodules[name] = made
    if made is component:
        m.d.comb += [ports[port].eq(value) for port, value in inputs.items()]  # type: ignore[attr-defined]
