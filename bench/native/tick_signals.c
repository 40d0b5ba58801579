/*
 * The signals of tick capture without the rest, for bench/jit: at each tick a timer
 * interrupts a thread that waits, and its handler interrupts the thread that is at work.
 */
#define _GNU_SOURCE
#include <ruby.h>

#ifdef __linux__
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Older C libraries don't name the field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Not the one of rperf, which has to find its own free. */
#define TICK (SIGRTMIN + 9)

static volatile pid_t waiting_thread, working_thread;
static timer_t timer;

static void on_interrupt(int signal) {}

static void on_tick(int signal)
{
    syscall(SYS_tgkill, getpid(), working_thread, SIGURG);
}

static void *wait_for_ticks(void *unused)
{
    waiting_thread = (pid_t)syscall(SYS_gettid);
    for (;;) pause();
    return NULL;
}

/* The thread that waits, which is made once. Ruby's threads block the tick. */
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

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(signal, &action, NULL);
}

static VALUE start_tick_signals(VALUE self, VALUE hertz)
{
    long nanoseconds = 1000000000L / NUM2LONG(hertz);
    struct itimerspec interval = {{0, nanoseconds}, {0, nanoseconds}};
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = TICK;
    event.sigev_notify_thread_id = thread_that_waits();
    working_thread = (pid_t)syscall(SYS_gettid);
    handle(SIGURG, on_interrupt);
    handle(TICK, on_tick);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) rb_sys_fail("timer_create");
    timer_settime(timer, 0, &interval, NULL);
    return Qnil;
}

/* One more may be on its way: by default SIGURG is ignored, and the tick's handler stays. */
static VALUE stop_tick_signals(VALUE self)
{
    timer_delete(timer);
    handle(SIGURG, SIG_DFL);
    return Qnil;
}

void define_tick_signals(VALUE module)
{
    rb_define_module_function(module, "start_tick_signals", start_tick_signals, 1);
    rb_define_module_function(module, "stop_tick_signals", stop_tick_signals, 0);
}
#else
void define_tick_signals(VALUE module) {}
#endif
