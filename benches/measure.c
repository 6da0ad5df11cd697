/* Runs a command and tells what it took, a line at the end of a file:
 *
 *   measure FILE COMMAND [ARGUMENT…]
 *
 * microseconds by the clock, of the processor in the program, and in the kernel for it;
 * and the largest resident set in KiB. All of the whole process, from before it is made
 * until it is gone. Ends as the command did. Link it statically: Linux counts into the
 * resident set of a program that of the process that started it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000LL + at.tv_nsec / 1000;
}

static long long microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

int main(int argc, char **argv) {
  if (argc < 3) return 64;
  FILE *file = fopen(argv[1], "ae");
  if (file == NULL) {
    perror(argv[1]);
    return 74;
  }
  const long long began = now();
  const pid_t child = vfork();
  if (child == 0) {
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return 71;
  fprintf(file, "%lld\t%lld\t%lld\t%ld\n", now() - began, microseconds(usage.ru_utime), microseconds(usage.ru_stime),
          usage.ru_maxrss);
  if (fclose(file) != 0) return 74;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
