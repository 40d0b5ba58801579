/*
 * Ticks that follow the GVL, and nothing else, for bench/web: what any profiler pays that interrupts
 * the thread which has the GVL, and rests while nobody has it. The timer wakes a thread of its own,
 * which interrupts the holder, whose handler is empty. A thread that gives the GVL up stops the timer,
 * as often as rperf does it: where the times in which nobody has the GVL are long, which the line of
 * the program tells.
 */
#define _GNU_SOURCE
#include <ruby.h>
#include <ruby/thread.h>

#ifdef __linux__
#include "tick_thread.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stops in an interval, in the mean, and at once: as in timer_state.rs. */
enum { STOPS = 3, STOP_NS = 1000000, BURST = 16 };
/* What is expected of idle times, by the line where they begin: as in idle_times.rs. */
enum { PLACES = 256, WORTH = 4, MEAN_OF = 8 };

enum { RESTS, RUNS, TAKEN };

static rb_internal_thread_event_hook_t *hook;
static timer_t timer;
static uint64_t interval;
/* When the timer expires, and at rest how long it has still to run: the owner's. So there are as many
   ticks in the time in which somebody has the GVL as if it never stopped, which rperf sees to by
   gaps without memory. */
static uint64_t deadline, left;
static _Atomic uint64_t may_stop;
static atomic_int state, holder;
static __thread pid_t own_id;
/* Of each place, of the present idle time, and since when it lasts, or 0: the GVL's holder's. */
static uint64_t expected[PLACES], idle_since;
static unsigned idle_place;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* 0 stops it. */
static void set_timer(uint64_t nanoseconds)
{
    deadline = now() + nanoseconds;
    struct itimerspec value = {{0, 0}, {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)}};
    timer_settime(timer, 0, &value, NULL);
}

static int takes(int from)
{
    return atomic_compare_exchange_strong(&state, &from, TAKEN);
}

static void arm(void)
{
    if (!takes(RESTS)) return;
    state = RUNS;
    set_timer(left);
}

static void rest(void)
{
    state = RESTS;
    if (holder != 0) arm();
}

static void on_interrupt(int signal) {}

static void on_tick(int signal)
{
    if (!takes(RUNS)) return;
    pid_t thread = holder;
    if (thread == 0) {
        left = interval;
        rest();
        return;
    }
    syscall(SYS_tgkill, getpid(), thread, SIGURG);
    set_timer(interval);
    state = RUNS;
}

static void end_idle_time(void)
{
    if (idle_since == 0) return;
    uint64_t time = now() - idle_since, *mean = &expected[idle_place];
    *mean += (time < interval ? time : interval) / MEAN_OF - *mean / MEAN_OF;
    idle_since = 0;
}

/* Whether it is expected to be worth a stop. */
static int begin_idle_time(uint64_t time)
{
    idle_place = (unsigned)rb_sourceline() % PLACES;
    idle_since = time;
    return expected[idle_place] >= interval / WORTH;
}

static void on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (event == RUBY_INTERNAL_THREAD_EVENT_RESUMED) {
        if (own_id == 0) own_id = (pid_t)syscall(SYS_gettid);
        holder = own_id;
        end_idle_time();
        if (state == RESTS) arm();
    } else if (event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED) {
        holder = 0;
        uint64_t time = now();
        uint64_t step = interval / STOPS < STOP_NS ? interval / STOPS : STOP_NS, ahead = (BURST - 1) * step, due = may_stop;
        if (time + ahead < due || state != RUNS || !begin_idle_time(time) || !takes(RUNS)) return;
        may_stop = (due > time ? due : time) + step;
        left = deadline > time ? deadline - time : 1;
        set_timer(0);
        rest();
    }
}

static VALUE start_followed_ticks(VALUE self, VALUE hertz)
{
    if (hook) rb_raise(rb_eRuntimeError, "the ticks are there already");
    handle(SIGURG, on_interrupt);
    timer = create_tick_timer(on_tick);
    interval = 1000000000u / NUM2ULL(hertz);
    left = interval;
    for (int place = 0; place < PLACES; place++) expected[place] = interval;
    holder = (pid_t)syscall(SYS_gettid);
    state = RESTS;
    hook = rb_internal_thread_add_event_hook(
        on_event, RUBY_INTERNAL_THREAD_EVENT_RESUMED | RUBY_INTERNAL_THREAD_EVENT_SUSPENDED, NULL);
    arm();
    return Qnil;
}

/* One more may be on its way: by default SIGURG is ignored, and the tick's handler stays. */
static VALUE stop_followed_ticks(VALUE self)
{
    if (!hook) return Qnil;
    rb_internal_thread_remove_event_hook(hook);
    hook = NULL;
    timer_delete(timer);
    handle(SIGURG, SIG_DFL);
    return Qnil;
}

void define_followed_ticks(VALUE module)
{
    rb_define_module_function(module, "start_followed_ticks", start_followed_ticks, 1);
    rb_define_module_function(module, "stop_followed_ticks", stop_followed_ticks, 0);
}
#else
void define_followed_ticks(VALUE module) {}
#endif
