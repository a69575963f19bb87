/* The clock of a machine that somebody sets, for the processes that load this: the file named by CLOCK_STEP_FILE
   holds seconds that are added to the time of day, and is read at every look at the clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

static long step(void) {
  char text[32];
  const char *path = getenv("CLOCK_STEP_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[got > 0 ? got : 0] = 0;
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int code = syscall(SYS_clock_gettime, clock, now);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += step();
  return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec at;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
  now->tv_sec = at.tv_sec;
  now->tv_usec = at.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *where) {
  struct timespec at;
  if (clock_gettime(CLOCK_REALTIME, &at)) return -1;
  if (where) *where = at.tv_sec;
  return at.tv_sec;
}
