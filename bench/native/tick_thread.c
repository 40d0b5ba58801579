/* See tick_thread.h. */
#define _GNU_SOURCE
#include <ruby.h>

#ifdef __linux__
#include "tick_thread.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older C libraries don't name the field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Not the one of rperf, which has to find its own free. */
#define TICK (SIGRTMIN + 9)

static volatile pid_t waiting_thread;

static void *wait_for_ticks(void *unused)
{
    /* So that its CPU time counts as a profiler's. */
    prctl(PR_SET_NAME, "rperf bench");
    waiting_thread = (pid_t)syscall(SYS_gettid);
    for (;;) pause();
    return NULL;
}

/* The thread that waits, which is made once. The thread that makes it blocks the tick. */
static pid_t thread_that_waits(void)
{
    if (!waiting_thread) {
        pthread_t thread;
        sigset_t tick;
        if (pthread_create(&thread, NULL, wait_for_ticks, NULL) != 0) rb_sys_fail("pthread_create");
        sigemptyset(&tick);
        sigaddset(&tick, TICK);
        pthread_sigmask(SIG_BLOCK, &tick, NULL);
        while (!waiting_thread) usleep(100);
    }
    return waiting_thread;
}

void handle(int signal, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, NULL);
}

timer_t create_tick_timer(void (*on_tick)(int))
{
    timer_t timer;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = TICK;
    event.sigev_notify_thread_id = thread_that_waits();
    handle(TICK, on_tick);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) rb_sys_fail("timer_create");
    return timer;
}
#endif
