/*
 * System calls as an extension makes them, for the specs: with the GVL or
 * without it, once, and with what they returned. A signal ends nanosleep and poll
 * early, but not read. And a wait that reads the clock itself, signal stacks of a
 * program's own, its handlers of faults, and a profiler of another kind.
 */
#include <errno.h>
#include <poll.h>
#include <ruby.h>
#include <ruby/thread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct call {
    long argument, result;
    int error;
    struct timespec left;
};

static void *make_nanosleep(void *data)
{
    struct call *call = data;
    struct timespec asked = {call->argument / 1000000000, call->argument % 1000000000};
    call->result = nanosleep(&asked, &call->left);
    call->error = errno;
    return NULL;
}

static void *make_poll(void *data)
{
    struct call *call = data;
    call->result = poll(NULL, 0, (int)call->argument);
    call->error = errno;
    return NULL;
}

static void *make_read(void *data)
{
    struct call *call = data;
    char byte;
    call->result = read((int)call->argument, &byte, 1);
    call->error = errno;
    return NULL;
}

/* [the result, errno or 0, nanoseconds that nanosleep left] */
static VALUE make(void *(*function)(void *), VALUE argument, VALUE with_gvl)
{
    struct call call = {NUM2LONG(argument), 0, 0, {0, 0}};
    if (RTEST(with_gvl)) function(&call);
    else rb_thread_call_without_gvl(function, &call, NULL, NULL);
    return rb_ary_new_from_args(3, LONG2NUM(call.result), INT2NUM(call.result < 0 ? call.error : 0),
                                LONG2NUM(call.left.tv_sec * 1000000000 + call.left.tv_nsec));
}

static VALUE native_nanosleep(VALUE self, VALUE nanoseconds, VALUE with_gvl)
{
    return make(make_nanosleep, nanoseconds, with_gvl);
}

static VALUE native_poll(VALUE self, VALUE milliseconds, VALUE with_gvl)
{
    return make(make_poll, milliseconds, with_gvl);
}

static VALUE native_read(VALUE self, VALUE descriptor, VALUE with_gvl)
{
    return make(make_read, descriptor, with_gvl);
}

struct wait {
    struct timespec asked, begun, ended;
};

static void *make_wait(void *data)
{
    struct wait *wait = data;
    clock_gettime(CLOCK_MONOTONIC, &wait->begun);
    struct timespec left = wait->asked;
    while (nanosleep(&left, &left) == -1 && errno == EINTR) continue;
    clock_gettime(CLOCK_MONOTONIC, &wait->ended);
    return NULL;
}

/* Waits without the GVL, as a driver waits for its server: how many nanoseconds it had no need of the GVL. */
static VALUE native_wait(VALUE self, VALUE nanoseconds)
{
    long asked = NUM2LONG(nanoseconds);
    struct wait wait = {{asked / 1000000000, asked % 1000000000}, {0, 0}, {0, 0}};
    rb_thread_call_without_gvl(make_wait, &wait, NULL, NULL);
    return LONG2NUM((wait.ended.tv_sec - wait.begun.tv_sec) * 1000000000 + wait.ended.tv_nsec - wait.begun.tv_nsec);
}

/* The calling thread's signal stack from now on: `size` bytes, with as many below that nobody may write to. */
static unsigned char *below;
static size_t stack_size;

static VALUE native_signal_stack(VALUE self, VALUE size)
{
    stack_t stack = {0};
    stack_size = NUM2SIZET(size);
    below = malloc(2 * stack_size);
    memset(below, 0xA5, 2 * stack_size);
    stack.ss_sp = below + stack_size;
    stack.ss_size = stack_size;
    if (sigaltstack(&stack, NULL) != 0) rb_sys_fail("sigaltstack");
    return Qnil;
}

/* How many of the bytes below it have changed. */
static VALUE native_overwritten(VALUE self)
{
    size_t changed = 0;
    for (size_t at = 0; at < stack_size; at++) changed += below[at] != 0xA5;
    return SIZET2NUM(changed);
}

static VALUE native_fault(VALUE self)
{
    volatile char *nowhere = NULL;
    *nowhere = 1;
    return Qnil;
}

/* Faults that survives_fault makes are survived from now on, by a handler of the program's own. */
static sigjmp_buf landing;

static void land(int signal, siginfo_t *info, void *context)
{
    siglongjmp(landing, 1);
}

static VALUE native_handle_faults(VALUE self)
{
    struct sigaction action = {0};
    action.sa_sigaction = land;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (sigaction(SIGSEGV, &action, NULL) != 0) rb_sys_fail("sigaction");
    return Qnil;
}

static VALUE native_survives_fault(VALUE self)
{
    volatile char *nowhere = NULL;
    if (sigsetjmp(landing, 1)) return Qtrue;
    *nowhere = 1;
    return Qfalse;
}

/* As profilers do that use SIGPROF: asks for it each millisecond of CPU time, and counts what comes. */
static volatile sig_atomic_t profiling_signals;

static void count_signal(int signal)
{
    profiling_signals++;
}

static VALUE native_begin_profiling(VALUE self)
{
    struct sigaction action = {0};
    struct itimerval each = {{0, 1000}, {0, 1000}};
    action.sa_handler = count_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    profiling_signals = 0;
    if (sigaction(SIGPROF, &action, NULL) != 0) rb_sys_fail("sigaction");
    if (setitimer(ITIMER_PROF, &each, NULL) != 0) rb_sys_fail("setitimer");
    return Qnil;
}

/* How many came. */
static VALUE native_end_profiling(VALUE self)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    if (setitimer(ITIMER_PROF, &never, NULL) != 0) rb_sys_fail("setitimer");
    return INT2NUM((int)profiling_signals);
}

void Init_spec_native(void)
{
    VALUE module = rb_define_module("SpecNative");
    rb_define_module_function(module, "nanosleep", native_nanosleep, 2);
    rb_define_module_function(module, "poll", native_poll, 2);
    rb_define_module_function(module, "read", native_read, 2);
    rb_define_module_function(module, "wait", native_wait, 1);
    rb_define_module_function(module, "signal_stack", native_signal_stack, 1);
    rb_define_module_function(module, "overwritten", native_overwritten, 0);
    rb_define_module_function(module, "fault", native_fault, 0);
    rb_define_module_function(module, "handle_faults", native_handle_faults, 0);
    rb_define_module_function(module, "survives_fault", native_survives_fault, 0);
    rb_define_module_function(module, "begin_profiling", native_begin_profiling, 0);
    rb_define_module_function(module, "end_profiling", native_end_profiling, 0);
}
