"""The cocotb benches."""
