/*
 * The signals of tick capture without the rest, for bench/jit: at each tick a timer
 * interrupts a thread that waits, and its handler interrupts the thread that is at work.
 */
#define _GNU_SOURCE
#include <ruby.h>

#ifdef __linux__
#include "tick_thread.h"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile pid_t working_thread;
static timer_t timer;

static void on_interrupt(int signal) {}

static void on_tick(int signal)
{
    syscall(SYS_tgkill, getpid(), working_thread, SIGURG);
}

static VALUE start_tick_signals(VALUE self, VALUE hertz)
{
    long nanoseconds = 1000000000L / NUM2LONG(hertz);
    struct itimerspec interval = {{0, nanoseconds}, {0, nanoseconds}};
    working_thread = (pid_t)syscall(SYS_gettid);
    handle(SIGURG, on_interrupt);
    timer = create_tick_timer(on_tick);
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
