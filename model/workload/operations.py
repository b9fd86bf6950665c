"""What a rank of a program does: its operations, as numbers."""

#: kinds of operations of a program: hand a message over; wait until it has left the host; post its receive; wait until
#: it has arrived; compute; sleep
SEND, WAIT_SENT, POST, RECEIVE, COMPUTE, SLEEP = range(6)
JOIN = 8
"""Take part in an operation of collective units, and wait for its result; its operand is a part (`UnitCalls`)."""
