#include "peers/precedence.hpp"

#include <pthread.h>
#include <sched.h>

namespace idem::bench {

bool take_precedence() {
  sched_param priority{};
  priority.sched_priority = 50;
  return ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority) == 0;
}

}  // namespace idem::bench
