/* Copyright (c) 2026 bareon.allocator maintainers
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loaded before User Mode Linux: a processor with AMX has more extended state than its kernel has room for, and the host's kernel takes
 * the state of a process only as a whole. The rest of it is left as it is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long (*function)(enum __ptrace_request, int, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static char whole[65536];
    function next = (function)dlsym(RTLD_NEXT, "ptrace");
    va_list words;
    va_start(words, request);
    int process = va_arg(words, int);
    void *address = va_arg(words, void *), *data = va_arg(words, void *);
    va_end(words);
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
        struct iovec *given = data, all = {whole, sizeof(whole)};
        if (next(PTRACE_GETREGSET, process, address, &all) < 0)
            return -1;
        if (given->iov_len < all.iov_len) {
            memcpy(whole, given->iov_base, given->iov_len);
            return next(request, process, address, &all);
        }
    }
    return next(request, process, address, data);
}
