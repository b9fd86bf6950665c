"""Equal parts of a design, elaborated once."""

from collections.abc import Hashable

from amaranth.hdl import Elaboratable
from amaranth.lib.wiring import Component

__all__ = ["shared"]


def shared(component: Component, platform: object, *key: Hashable) -> Elaboratable:
    """Return what stands for `component` inside its parent.

    In a simulation that is the component itself. A platform with a method ``instance(component, key)``
    (`hopforge.gen.modules`) makes one module of all components of the same class and `key`, and gives an instance of
    it: a router of 64 ports has thousands of arbiters, of which few differ.

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
