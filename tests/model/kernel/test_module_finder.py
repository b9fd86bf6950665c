"""Finding the module at an address gives what looking through all modules gives."""

from ctypes import c_void_p, cast

from llvmlite import binding

from hopforge.model.kernel import module_finder

TEXT = "define i32 @f{0}() {{\n  ret i32 {0}\n}}\n"


def engine_with(count: int) -> tuple[binding.ExecutionEngine, list[binding.ModuleRef]]:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(TEXT.format(0)), machine)
    modules = [binding.parse_assembly(TEXT.format(1 + number)) for number in range(count)]
    for module in modules:
        engine.add_module(module)
    return engine, modules


def test_every_module_is_found_and_one_that_was_removed_is_not() -> None:
    engine, modules = engine_with(5)
    for module in (*modules, *engine._modules):
        assert engine._find_module_ptr(module._ptr) is module
        assert module_finder._search(engine, module._ptr) is module
    engine.remove_module(modules[2])
    assert engine._find_module_ptr(modules[2]._ptr) is None
    assert engine._find_module_ptr(modules[3]._ptr) is modules[3]
    engine.add_module(modules[2])
    assert engine._find_module_ptr(modules[2]._ptr) is modules[2]
    assert engine._find_module_ptr(cast(8, c_void_p)) is None


def test_a_module_that_nobody_holds_is_not_kept() -> None:
    engine, modules = engine_with(1)
    assert len(vars(engine)["_module_at"]) == 1
    engine.remove_module(modules[0])
    modules.clear()
    assert not vars(engine)["_module_at"]
