/* Preloaded into a process, shifts its wall clock by CLOCK_SHIFT seconds; time that passes is as ever.
 *
 * libfaketime 0.9.10 also touches sleeps, in which Python fails or hangs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

static long shift(void) {
    const char *text = getenv("CLOCK_SHIFT");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}

/* Who waits until a time of day computes it by the shifted clock, and the kernel's is not shifted. The
 * seconds of the monotonic clock, by which the JVM waits, are few. */
static struct timespec there(const struct timespec *until) {
    struct timespec result = *until;
    if (result.tv_sec > 1000000000) result.tv_sec -= shift();
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec unshifted = there(until);
    return real(condition, mutex, &unshifted);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec unshifted = there(until);
    return real(condition, mutex, &unshifted);
}
