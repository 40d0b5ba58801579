/*
 * A library for LD_PRELOAD that has system calls of rperf fail, and of nothing else: neither the
 * program's nor Ruby's.
 *
 *   FAULTS_IN      where calls come from: "rperf.so" is the extension, "rperf" the command
 *   FAULTS_CALLS   names of calls, as "write,rename", each as it is defined below
 *   FAULTS_ERRNO   what they fail with
 *   FAULTS_NTH     which of them: "3" the third one of a process, "3+" from the third one on, "/2" each second one
 *   FAULTS_MADE    a file that gets a line for each fault: the number of the process and the name of the call
 *   FAULTS_STEP    nanoseconds by which FAULTS_CLOCK (a number) is wrong at such calls of clock_gettime, instead
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *names, *made, *meant;
static int number;
static long first, every;
static int goes_on;
static clockid_t wrong_clock;
static long step;
static atomic_long calls;

__attribute__((constructor)) static void read_environment(void)
{
    const char *nth = getenv("FAULTS_NTH"), *text;
    names = getenv("FAULTS_CALLS");
    made = getenv("FAULTS_MADE");
    meant = getenv("FAULTS_IN");
    if ((text = getenv("FAULTS_ERRNO"))) number = atoi(text);
    if ((text = getenv("FAULTS_CLOCK"))) wrong_clock = atoi(text);
    if ((text = getenv("FAULTS_STEP"))) step = atol(text);
    first = 1;
    goes_on = 1;
    if (nth && *nth == '/') {
        every = atol(nth + 1);
    } else if (nth) {
        first = atol(nth);
        goes_on = strchr(nth, '+') != NULL;
    }
}

static int is_meant(const char *call)
{
    size_t length = strlen(call);
    for (const char *at = names; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, call, length) == 0 && (at[length] == ',' || at[length] == 0)) return 1;
    return 0;
}

/* Whether the code at `address` is in what FAULTS_IN names. What was found is kept: handlers of signals ask, too, and dladdr takes a
   lock. Each place holds an address, moved up by a bit, and below it the answer. */
static int is_ours(void *address)
{
    static _Atomic uintptr_t known[4096];
    uintptr_t asked = (uintptr_t)address << 1;
    _Atomic uintptr_t *place = &known[((uintptr_t)address >> 2) % 4096];
    uintptr_t found = atomic_load(place);
    Dl_info info;
    const char *name;
    int ours = 0;
    if ((found & ~(uintptr_t)1) == asked) return found & 1;
    if (dladdr(address, &info) && info.dli_fname) {
        name = strrchr(info.dli_fname, '/');
        name = name ? name + 1 : info.dli_fname;
        ours = strcmp(name, meant) == 0;
    }
    atomic_store(place, asked | ours);
    return ours;
}

/* By calls of the kernel alone: the wrappers could be those below. */
static void note(const char *call)
{
    char line[96];
    int length, file;
    if (!made) return;
    file = syscall(SYS_openat, AT_FDCWD, made, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    length = snprintf(line, sizeof line, "%ld %s\n", (long)syscall(SYS_getpid), call);
    syscall(SYS_write, file, line, length);
    syscall(SYS_close, file);
}

static int is_due(const char *call, void *caller)
{
    int saved = errno, due;
    long count;
    if (!names || !meant || !is_meant(call) || !is_ours(caller)) {
        errno = saved;
        return 0;
    }
    count = atomic_fetch_add(&calls, 1) + 1;
    due = every ? count % every == 0 : count == first || (goes_on && count > first);
    if (due) note(call);
    errno = saved;
    return due;
}

/* Calls with a fixed number of arguments, which say by errno what is wrong. */
#define CALL(type, call, parameters, arguments)                                                  \
    type call parameters                                                                         \
    {                                                                                            \
        static type(*next) parameters;                                                           \
        if (is_due(#call, __builtin_return_address(0))) {                                        \
            errno = number;                                                                      \
            return (type)-1;                                                                     \
        }                                                                                        \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #call);                           \
        return next arguments;                                                                   \
    }

/* Those with one more argument now and then. */
#define CALL_WITH_MODE(call, parameters, arguments)                                              \
    int call parameters                                                                          \
    {                                                                                            \
        static int(*next) parameters;                                                            \
        long more;                                                                               \
        va_list rest;                                                                            \
        if (is_due(#call, __builtin_return_address(0))) {                                        \
            errno = number;                                                                      \
            return -1;                                                                           \
        }                                                                                        \
        va_start(rest, flags);                                                                   \
        more = va_arg(rest, long);                                                               \
        va_end(rest);                                                                            \
        if (!next) next = (int(*) parameters)dlsym(RTLD_NEXT, #call);                            \
        return next arguments;                                                                   \
    }

CALL_WITH_MODE(open, (const char *path, int flags, ...), (path, flags, more))
CALL_WITH_MODE(open64, (const char *path, int flags, ...), (path, flags, more))
CALL_WITH_MODE(openat, (int at, const char *path, int flags, ...), (at, path, flags, more))
CALL_WITH_MODE(openat64, (int at, const char *path, int flags, ...), (at, path, flags, more))
CALL_WITH_MODE(fcntl, (int file, int flags, ...), (file, flags, more))
CALL_WITH_MODE(fcntl64, (int file, int flags, ...), (file, flags, more))

CALL(ssize_t, read, (int file, void *to, size_t size), (file, to, size))
CALL(ssize_t, write, (int file, const void *from, size_t size), (file, from, size))
CALL(ssize_t, pread64, (int file, void *to, size_t size, off64_t at), (file, to, size, at))
CALL(int, flock, (int file, int what), (file, what))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat, (int f, const char *from, int t, const char *to), (f, from, t, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, rmdir, (const char *path), (path))
CALL(int, chmod, (const char *path, mode_t mode), (path, mode))
CALL(int, fchmod, (int file, mode_t mode), (file, mode))
CALL(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *to), (at, path, flags, mask, to))
CALL(int, pipe2, (int to[2], int flags), (to, flags))
CALL(int, poll, (struct pollfd *of, nfds_t count, int limit), (of, count, limit))
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, socketpair, (int domain, int type, int protocol, int to[2]), (domain, type, protocol, to))
CALL(int, bind, (int file, const struct sockaddr *to, socklen_t size), (file, to, size))
CALL(int, listen, (int file, int count), (file, count))
CALL(int, accept4, (int file, struct sockaddr *of, socklen_t *size, int flags), (file, of, size, flags))
CALL(ssize_t, recv, (int file, void *to, size_t size, int flags), (file, to, size, flags))
CALL(ssize_t, send, (int file, const void *from, size_t size, int flags), (file, from, size, flags))
CALL(int, sigaction, (int signal, const struct sigaction *to, struct sigaction *from), (signal, to, from))
CALL(int, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer))
CALL(pid_t, waitpid, (pid_t process, int *status, int flags), (process, status, flags))

/* It returns the number of the error. */
int pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*function)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (is_due("pthread_create", __builtin_return_address(0))) return number;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, with, function, argument);
}

/* The clock goes on, and says something wrong now and then. */
int clock_gettime(clockid_t clock, struct timespec *to)
{
    static int (*next)(clockid_t, struct timespec *);
    int result;
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    result = next(clock, to);
    if (result == 0 && step != 0 && clock == wrong_clock && is_due("clock_gettime", __builtin_return_address(0))) {
        to->tv_sec += step / 1000000000;
        to->tv_nsec += step % 1000000000;
        if (to->tv_nsec < 0) to->tv_nsec += 1000000000, to->tv_sec--;
        if (to->tv_nsec >= 1000000000) to->tv_nsec -= 1000000000, to->tv_sec++;
    }
    return result;
}
