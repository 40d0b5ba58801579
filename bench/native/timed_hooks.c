/*
 * Hooks of the GVL that take a known time and do nothing else, for bench/overhead: what any
 * hook costs a program by its length alone.
 */
#include <ruby.h>
#include <ruby/thread.h>
#include <stdint.h>
#include <time.h>

static rb_internal_thread_event_hook_t *hook;
static uint64_t length;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    uint64_t ends = now() + length;
    while (now() < ends) {}
}

static VALUE add_timed_hooks(VALUE self, VALUE nanoseconds)
{
    if (hook) rb_raise(rb_eRuntimeError, "the hooks are there already");
    length = NUM2ULL(nanoseconds);
    hook = rb_internal_thread_add_event_hook(on_event,
                                             RUBY_INTERNAL_THREAD_EVENT_STARTED | RUBY_INTERNAL_THREAD_EVENT_READY |
                                                 RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                                 RUBY_INTERNAL_THREAD_EVENT_SUSPENDED |
                                                 RUBY_INTERNAL_THREAD_EVENT_EXITED,
                                             NULL);
    return Qnil;
}

static VALUE remove_timed_hooks(VALUE self)
{
    if (hook) rb_internal_thread_remove_event_hook(hook);
    hook = NULL;
    return Qnil;
}

void define_timed_hooks(VALUE module)
{
    rb_define_module_function(module, "add_timed_hooks", add_timed_hooks, 1);
    rb_define_module_function(module, "remove_timed_hooks", remove_timed_hooks, 0);
}
