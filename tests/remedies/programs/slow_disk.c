/* A disk that is slow for one file: each write to a path that contains SLOW_PATH takes SLOW_MS longer, and so does each open of it for writing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static void slow(const char *path) {
    const char *part = getenv("SLOW_PATH");
    if (part && path && strstr(path, part)) usleep(1000 * atoi(getenv("SLOW_MS")));
}
static void slow_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) { path[length] = 0; slow(path); }
}
ssize_t write(int fd, const void *data, size_t count) {
    slow_fd(fd);
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, count);
}
ssize_t writev(int fd, const struct iovec *data, int count) {
    slow_fd(fd);
    return ((ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev"))(fd, data, count);
}
int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (flags & (O_WRONLY | O_RDWR)) slow(path);
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}
