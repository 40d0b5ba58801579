/* A timer of ticks that wakes a thread of its own, as rperf's does. For Linux alone. */
#ifndef TICK_THREAD_H
#define TICK_THREAD_H

#include <time.h>

/* Has `handler` called for `signal`, with interrupted system calls begun anew. */
void handle(int signal, void (*handler)(int));

/* A timer at rest. At each expiry `on_tick` runs, as a signal's handler, on the thread that waits. */
timer_t create_tick_timer(void (*on_tick)(int));

#endif
