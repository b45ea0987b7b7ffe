// Preloaded (LD_PRELOAD) by scripts/check-ab: every fsync and fdatasync takes SLOW_SYNC_NS longer,
// spent on the processor so that the scheduler adds nothing of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int slowed(const char* name, int descriptor) {
  const char* told = getenv("SLOW_SYNC_NS");
  const long long end = now_ns() + (told ? atoll(told) : 0);
  while (now_ns() < end) {
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(descriptor);
}

int fsync(int descriptor) { return slowed("fsync", descriptor); }
int fdatasync(int descriptor) { return slowed("fdatasync", descriptor); }
