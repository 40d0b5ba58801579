/*
 * C code that takes a known time, for bench/accuracy: spinning, and sleeping with
 * and without the GVL. Times are in nanoseconds.
 */
#include <errno.h>
#include <ruby.h>
#include <ruby/thread.h>
#include <stdint.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Sleeps to an instant, so that a signal (profilers send them) doesn't end it early. */
static void *sleep_until(void *data)
{
    uint64_t ends = *(uint64_t *)data, current;
    while ((current = now()) < ends) {
        struct timespec left = {(time_t)((ends - current) / 1000000000u), (long)((ends - current) % 1000000000u)};
        if (nanosleep(&left, NULL) != 0 && errno != EINTR) break;
    }
    return NULL;
}

static VALUE c_busy(VALUE self, VALUE duration)
{
    uint64_t ends = now() + NUM2ULL(duration);
    while (now() < ends) {}
    return Qnil;
}

static VALUE c_sleep_gvl(VALUE self, VALUE duration)
{
    uint64_t ends = now() + NUM2ULL(duration);
    sleep_until(&ends);
    return Qnil;
}

static VALUE c_sleep_nogvl(VALUE self, VALUE duration)
{
    uint64_t ends = now() + NUM2ULL(duration);
    rb_thread_call_without_gvl(sleep_until, &ends, NULL, NULL);
    return Qnil;
}

void define_followed_ticks(VALUE module);
void define_tick_signals(VALUE module);
void define_timed_hooks(VALUE module);

void Init_bench_native(void)
{
    VALUE module = rb_define_module("BenchNative");
    rb_define_module_function(module, "c_busy", c_busy, 1);
    rb_define_module_function(module, "c_sleep_gvl", c_sleep_gvl, 1);
    rb_define_module_function(module, "c_sleep_nogvl", c_sleep_nogvl, 1);
    define_followed_ticks(module);
    define_tick_signals(module);
    define_timed_hooks(module);
}
