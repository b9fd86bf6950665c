"""Columns of the arrays: inputs, outputs, parameters, registers, operations, MSHRs, TCAM rows."""

from hopforge.model.lookup.csr import COUNTERS, CSR_ADDR_BITS
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs

INPUTS = LookupInputs._fields
OUTPUTS = LookupOutputs._fields

# columns of inputs and outputs
(I_REQ_VALID, I_REQ_DST, I_REQ_TAG, I_RESP_READY, I_CSR_ADDR, I_CSR_WE, I_CSR_RE, I_CSR_WDATA, I_LINK_CHANGE,
 I_TCAM_READY, I_TCAM_VALID, I_TCAM_ID, I_TCAM_MATCH, I_TCAM_OUTPUT) = range(14)  # fmt: skip
(O_REQ_READY, O_RESP_VALID, O_RESP_TAG, O_RESP_OUTPUT, O_RESP_MATCH, O_RESP_HIT, O_CSR_RDATA, _, O_TCAM_VALID,
 O_TCAM_ID, O_TCAM_DST) = range(11)  # fmt: skip

# parameters
(P_A, P_DEPTH, P_SETS, P_WAYS, P_POLICY, P_SKEWED, P_EPOCHS, P_MSHRS, P_TCAM, P_LATENCY, P_OUTPUT_MASK, P_COMPARATORS,
 P_CHUNKS, P_MAX_MEMBERS, P_FUNCTIONS, P_ROWS, P_RADICES, P_MEMORY_STAGE, P_CHUNK0) = range(19)  # fmt: skip
FLOPS, SRAM, EXTERNAL = range(3)

# scalar registers
(S_FLUSH_REQUEST, S_HOLD, S_PENDING, S_EPOCH, S_DEBT, S_SCRUB_ACTIVE, S_SCRUB_ROW, S_FLUSH_WAIT, S_INV_PENDING,
 S_INV_BUSY, S_INV_DST, S_ISSUE_POINTER, S_FILL_POINTER, S_OVERRUN, S_RDATA, S_LFSR, S_CYCLE, S_TCAM_BUSY,
 S_ROW_EFFECTIVE, S_WRITE_PENDING, S_WRITE_ROW, S_OUT_VALID, S_OUT_TAG, S_OUT_OUTPUT, S_OUT_MATCH, S_OUT_HIT,
 S_CONFIGURED,
 # deep engines only; MSHR numbers are one more than the number, 0: none
 S_CONFIGURED_BEFORE, S_LATE_REQUEST, S_ENABLE_1, S_ENABLE_2, S_SCRUB_WAS_LAST, S_T, S_TO_FILL, S_TO_ISSUE, S_PORT,
 S_RESPONSES, S_LATE_ANSWER, S_LATE_MATCH, S_LATE_OUTPUT, S_LATE_READ, S_LATE_RDATA, S_LATE_CLEAR,
 S_COUNT) = range(44)  # fmt: skip

# active configuration
(C_ENABLE, C_MODE, C_CHUNK, C_UP, C_HASH, C_MEMBERS, C_OWN, C_LEVEL, C_DIGITS, C_RADIX0) = range(10)

# operations: stages and fields
(OP_A0, OP_A1, OP_C, OP_CHOSEN, OP_ENTER) = range(5)
(F_KIND, F_FRESH, F_KEY, F_DST, F_TAG, F_MSHR, F_ROW, F_COUNT) = range(8)
# deep engines: stages (four registers of A, the youngest first, as many as the depth has) and further fields
(DEEP_A0, _, _, _, DEEP_Q0, DEEP_Q1, DEEP_R, DEEP_C1, DEEP_C2, DEEP_M, DEEP_F, DEEP_TAKEN, DEEP_STAGES) = range(13)
(F_USABLE, F_MATCH, F_OUTPUT, F_DEEP_COUNT) = range(F_COUNT, F_COUNT + 4)
(X_TAG, X_OUTPUT, X_MATCH, X_HIT, X_COUNT) = range(5)
DEEP_RESPONSES = 4  # a place more with a memory stage
SHALLOW_DEPTHS = 4
SETUP_PERIODS = 3
NONE, LOOKUP, FILL, INVALIDATE, SCRUB = range(5)

# MSHRs
(M_STATE, M_STALE, M_PRIMARY, M_FRESH, M_KEY, M_DST, M_TAG, M_MATCH, M_OUTPUT, M_COUNT) = range(10)
FREE, WAIT_ISSUE, ISSUED, WAIT_PRIMARY, DONE, INJECTED = range(6)

# TCAM rows, and lookups on their way
(R_VALID, R_VALUE, R_MASK, R_OUTPUT, R_LAG, R_COUNT) = range(6)
(T_VALID, T_ID, T_DST, T_MEMBER, T_MATCH, T_OUTPUT, T_COUNT) = range(7)

# what an address of the CSR bus is
(K_NOTHING, K_WORD, K_CTRL, K_STATUS, K_CONFIG, K_INVALIDATE, K_TCAM_WRITE, K_COUNTER) = range(8)
SRAM_WRITE_CYCLES = 256
WORD_BITS = 32
COUNTER_NAMES = tuple(name for name, _ in COUNTERS)
(N_LOOKUPS, N_HITS, N_MISSES, N_MERGES, N_FILLS, N_EVICTIONS, N_DROPS, N_RETRIES, N_FLUSHES,
 N_INVALIDATIONS) = range(10)  # fmt: skip
CSR_WORDS = 1 << CSR_ADDR_BITS
