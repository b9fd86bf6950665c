"""A design of a board in Amaranth's simulator, with a host that speaks its register bus."""

from amaranth.sim import Simulator

from hopforge.model.board.protocol import BOARD_PAGE


class BoardBench:
    """Runs a function of (read, write, idle), all coroutines, against a design."""

    def __init__(self, design):
        self.design = design

    def run(self, steps):
        design = self.design

        async def bench(ctx):
            async def access(address, *, we, word=0):
                ctx.set(design.addr, address)
                ctx.set(design.wdata, word)
                ctx.set(design.we if we else design.re, 1)
                await ctx.tick()
                ctx.set(design.we, 0)
                ctx.set(design.re, 0)
                await ctx.tick().repeat(6)
                return ctx.get(design.rdata)

            async def write(address, word):
                await access(address, we=True, word=word)

            async def read(address):
                return await access(address, we=False)

            async def idle():
                for _ in range(100_000):
                    if not ctx.get(design.busy):
                        await ctx.tick().repeat(3)  # the last answer is counted
                        return
                    await ctx.tick()
                raise AssertionError("still busy")

            await steps(self, read, write, idle)

        sim = Simulator(design)
        sim.add_clock(1e-6)
        sim.add_testbench(bench)
        sim.run()

    def at(self, name):
        return BOARD_PAGE | self.design.map[name].address
