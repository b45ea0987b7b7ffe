// Takes the scheduler out of a measurement of single calls.
#pragma once

namespace idem::bench {

// From now on the calling thread runs before all ordinary work of the machine (SCHED_FIFO): what
// stops it then is its own doing, an interrupt or the hypervisor. False: it has not the right to.
// Where ordinary work has waited for 0.95 s the system gives it a share all the same.
[[nodiscard]] bool take_precedence();

}  // namespace idem::bench
