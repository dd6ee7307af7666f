// What libstdc++ and libgcc_s of a system with glibc need of it and do not find in musl: enough to run the standalone executable for musl where
// there is no libstdc++ for musl. `test/matrix.mjs` compiles it in place of glibc's loader.
#include <stddef.h>
#include <sys/types.h>

char __libc_single_threaded = 0;
struct { unsigned words[4]; } __cpu_model;

int __cpu_indicator_init(void) { return 0; }

// Says that it knows no object: libgcc then asks dl_iterate_phdr, which musl has.
int _dl_find_object(void *address, void *result) { return -1; }

// The objects of a thread are not destroyed when it ends.
int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *handle) { return 0; }

ssize_t getrandom(void *, size_t, unsigned);
unsigned arc4random(void) {
  unsigned word;
  getrandom(&word, sizeof word, 0);
  return word;
}

size_t strftime_l(char *, size_t, const char *, const void *, void *);
size_t __strftime_l(char *text, size_t size, const char *format, const void *time, void *locale) {
  return strftime_l(text, size, format, time, locale);
}
