/*
 * fake_nvml.c - a stand-in for libnvidia-ml.so.1, for tests without a GPU.
 *
 * Written from the published NVML function signatures; contains no NVIDIA code
 * and needs no NVIDIA header.  Build:
 *
 *   cc -std=gnu11 -O1 -Wall -Wextra -shared -fPIC -fvisibility=hidden \
 *      -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c -lpthread
 *
 * It answers from a small text file named by the environment variable
 * FAKE_NVML_SPEC (see README.md for the format).  With FAKE_NVML_SPEC unset it
 * behaves as a machine whose NVIDIA kernel driver is not loaded, so a stray copy
 * on a library path can never be taken for a real GPU.
 *
 * FAKE_NVML_LOG=FILE appends one line per call: "function device-index code".
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int ret_t;

enum {
    OK = 0, E_UNINIT = 1, E_ARG = 2, E_NOTSUP = 3, E_PERM = 4, E_NOTFOUND = 6, E_SIZE = 7,
    E_NODRIVER = 9, E_TIMEOUT = 10, E_NOFUNC = 13, E_VERSION = 25, E_UNKNOWN = 999
};

static const struct { int code; const char *name, *text; } ERRORS[] = {
    {0, "SUCCESS", "Success"},
    {1, "UNINITIALIZED", "Uninitialized"},
    {2, "INVALID_ARGUMENT", "Invalid Argument"},
    {3, "NOT_SUPPORTED", "Not Supported"},
    {4, "NO_PERMISSION", "Insufficient Permissions"},
    {5, "ALREADY_INITIALIZED", "Already Initialized"},
    {6, "NOT_FOUND", "Not Found"},
    {7, "INSUFFICIENT_SIZE", "Insufficient Size"},
    {8, "INSUFFICIENT_POWER", "Insufficient External Power"},
    {9, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
    {10, "TIMEOUT", "Timeout"},
    {11, "IRQ_ISSUE", "Interrupt Request Issue"},
    {12, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"},
    {13, "FUNCTION_NOT_FOUND", "Function Not Found"},
    {14, "CORRUPTED_INFOROM", "Corrupted infoROM"},
    {15, "GPU_IS_LOST", "GPU is lost"},
    {16, "RESET_REQUIRED", "GPU requires reset"},
    {17, "OPERATING_SYSTEM", "Operating system error"},
    {18, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch"},
    {19, "IN_USE", "In use by another client"},
    {20, "MEMORY", "Insufficient Memory"},
    {21, "NO_DATA", "No data"},
    {22, "VGPU_ECC_NOT_SUPPORTED", "vGPU ECC not supported"},
    {23, "INSUFFICIENT_RESOURCES", "Insufficient Resources"},
    {24, "FREQ_NOT_SUPPORTED", "Frequency not supported"},
    {25, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch"},
    {26, "DEPRECATED", "Deprecated"},
    {27, "NOT_READY", "Not ready"},
    {28, "GPU_NOT_FOUND", "No GPU found"},
    {29, "INVALID_STATE", "Invalid state"},
    {999, "UNKNOWN", "Unknown Error"},
};
#define N_ERRORS (sizeof ERRORS / sizeof *ERRORS)

/* ---- model ------------------------------------------------------------- */

enum { MAX_DEV = 16, MAX_MIG = 8, MAX_PROC = 16, MAX_INJ = 48, MAX_PAGES = 64, MAX_XID = 16, MAX_FIELD = 32 };

typedef struct { char fn[64]; int code, from_call, calls, sleep_ms, segv; } inject_t;
typedef struct { inject_t item[MAX_INJ]; int n; } injects_t;
typedef struct { u32 pid, gi, ci; u64 used; char name[128]; int graphics; } proc_t;
typedef struct { u32 id; int is_double; u64 u; double d; int code; } field_t;

typedef struct device {
    u32 magic;
    int index, is_mig;
    struct device *parent;
    char name[96], uuid[96], bus_id[32], serial[32];
    u32 pci_device_id, pci_subsystem_id, minor, gi, ci, slices;
    int cc_major, cc_minor;
    u32 arch, brand, cores;
    u64 mem_total, mem_used, mem_reserved; int mem_ok;
    int ecc_ok; u32 ecc_cur, ecc_pend;
    u64 ecc[2][2];              /* [corrected, uncorrected][volatile, aggregate] */
    u64 ecc_sram[2][2];
    int retired_ok; u64 retired[2][MAX_PAGES]; u32 n_retired[2], retired_pending;
    int remap_ok; u32 remap[4]; /* corrected, uncorrected, pending, failure */
    u32 histogram[5];
    int repair_ok; u32 repair[2];
    int temp_ok, temp, temp_slow, temp_shut, margin_ok, margin;
    int mem_temp_ok, mem_temp;
    int power_ok; u32 power_mw, limit_mw;
    u64 reasons, reasons_supported; int reasons_ok;
    int persistence_ok; u32 persistence, compute_mode, pstate, virt_mode;
    int mig_ok; u32 mig_cur, mig_pend;
    int util_ok; u32 util_gpu, util_mem;
    u32 recovery; int recovery_ok;
    u32 sram_threshold;
    proc_t proc[MAX_PROC]; int n_proc;
    u32 xid[MAX_XID]; int n_xid, next_xid;
    u64 event_types;
    field_t field[MAX_FIELD]; int n_field;
    injects_t inj;
    struct device *mig[MAX_MIG]; int n_mig;
} device_t;

#define MAGIC 0x4e564d4cu

static struct {
    pthread_mutex_t lock;
    int refs, loaded;
    char driver[80], nvml[80];
    int cuda, no_libcuda;
    device_t dev[MAX_DEV]; int n_dev;
    device_t mig_pool[MAX_DEV * MAX_MIG]; int n_mig_pool;
    injects_t inj;
} S = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- helpers ----------------------------------------------------------- */

static void complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("fake-nvml: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int error_code(const char *s, int *out)
{
    char *end;
    if (!strncasecmp(s, "NVML_ERROR_", 11)) s += 11;
    for (size_t i = 0; i < N_ERRORS; i++)
        if (!strcasecmp(s, ERRORS[i].name)) { *out = ERRORS[i].code; return 1; }
    long v = strtol(s, &end, 0);
    if (end != s && !*end) { *out = (int)v; return 1; }
    return 0;
}

static char *trim(char *s)
{
    while (isspace((unsigned char)*s)) s++;
    char *e = s + strlen(s);
    while (e > s && isspace((unsigned char)e[-1])) *--e = 0;
    return s;
}

/* "80GiB", "16384 MiB", "1024" (bytes) */
static int bytes(const char *s, u64 *out)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s) return 0;
    while (isspace((unsigned char)*end)) end++;
    u64 mul = !*end || !strcasecmp(end, "B") ? 1 :
              !strcasecmp(end, "KiB") ? 1ull << 10 : !strcasecmp(end, "MiB") ? 1ull << 20 :
              !strcasecmp(end, "GiB") ? 1ull << 30 : 0;
    if (!mul) return 0;
    *out = (u64)(v * (double)mul);
    return 1;
}

static int numbers(const char *s, u64 *out, int want)
{
    int n = 0;
    while (*s && n < want) {
        while (isspace((unsigned char)*s) || *s == ',' || *s == '/') s++;
        if (!*s) break;
        char *end;
        out[n] = strtoull(s, &end, 0);
        if (end == s) return -1;
        n++;
        s = end;
    }
    return n;
}

static void copy(char *dst, size_t size, const char *src) { snprintf(dst, size, "%s", src); }

static u32 arch_of_cc(int major, int minor)
{
    switch (major) {
    case 3: return 2;
    case 5: return 3;
    case 6: return 4;
    case 7: return minor >= 5 ? 6 : 5;
    case 8: return minor >= 9 ? 8 : 7;
    case 9: return 9;
    case 10: case 11: case 12: return 10;
    }
    return 0xffffffffu;
}

/* Does injection key `key` name function `fn`?  A key without _vN matches every version. */
static int same_function(const char *key, const char *fn)
{
    if (!strcmp(key, fn)) return 1;
    const char *v = strrchr(fn, '_');
    if (!v || v[1] != 'v' || !isdigit((unsigned char)v[2])) return 0;
    size_t base = (size_t)(v - fn);
    return strlen(key) == base && !strncmp(key, fn, base);
}

static inject_t *find_inject(injects_t *t, const char *fn)
{
    inject_t *any = NULL;
    for (int i = 0; i < t->n; i++) {
        if (same_function(t->item[i].fn, fn)) return &t->item[i];
        if (!strcmp(t->item[i].fn, "*")) any = &t->item[i];
    }
    return any;
}

static inject_t *find_wildcard(injects_t *t)
{
    for (int i = 0; i < t->n; i++) if (!strcmp(t->item[i].fn, "*")) return &t->item[i];
    return NULL;
}

static void log_call(const char *fn, const device_t *d, int code)
{
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s %d %d\n", fn, d ? d->index : -1, code);
    fclose(f);
}

static int apply(inject_t *i)
{
    if (!i) return OK;
    i->calls++;
    if (i->calls < i->from_call) return OK;
    if (i->sleep_ms) {
        struct timespec t = {i->sleep_ms / 1000, (i->sleep_ms % 1000) * 1000000L};
        nanosleep(&t, NULL);
    }
    if (i->segv) raise(SIGSEGV);
    return i->code;
}

static int known(const device_t *d)
{
    if (!d) return 0;
    for (int i = 0; i < S.n_dev; i++) if (d == &S.dev[i]) return 1;
    for (int i = 0; i < S.n_mig_pool; i++) if (d == &S.mig_pool[i]) return 1;
    return 0;
}

/* Common start of every call: initialised? valid handle? injected error? */
static int gate(const char *fn, device_t *d, int wants_device)
{
    int code = OK;
    if (!S.refs) code = E_UNINIT;
    else if (wants_device && !known(d)) { code = E_ARG; d = NULL; }
    else {
        inject_t *i = d ? find_inject(&d->inj, fn) : NULL;
        if (!i && d && d->is_mig) i = find_wildcard(&d->parent->inj);   /* a lost GPU loses its MIG devices too */
        if (!i) i = find_inject(&S.inj, fn);
        code = apply(i);
    }
    log_call(fn, d, code);
    return code;
}
#define SYS() do { int g_ = gate(__func__, NULL, 0); if (g_) return g_; } while (0)
#define DEV(d) do { int g_ = gate(__func__, (d), 1); if (g_) return g_; } while (0)
#define NEED(cond, code) do { if (!(cond)) return (code); } while (0)
#define NO_MIG_HANDLE(d) NEED(!(d)->is_mig, E_ARG)

static int out_string(char *buf, u32 len, const char *s)
{
    if (!buf) return E_ARG;
    if (strlen(s) + 1 > len) return E_SIZE;
    memcpy(buf, s, strlen(s) + 1);
    return OK;
}

/* ---- spec file --------------------------------------------------------- */

static int add_inject(injects_t *t, const char *fn, char *value)
{
    if (t->n == MAX_INJ) return 0;
    inject_t *i = &t->item[t->n];
    memset(i, 0, sizeof *i);
    copy(i->fn, sizeof i->fn, fn);
    i->from_call = 1;
    char *at = strchr(value, '@');
    if (at) { *at = 0; i->from_call = atoi(at + 1); }
    value = trim(value);
    if (!strncasecmp(value, "SLEEP:", 6)) i->sleep_ms = atoi(value + 6);
    else if (!strcasecmp(value, "SEGV")) i->segv = 1;
    else if (!error_code(value, &i->code)) return 0;
    t->n++;
    return 1;
}

static void defaults(device_t *d, int index)
{
    memset(d, 0, sizeof *d);
    d->magic = MAGIC;
    d->index = index;
    copy(d->name, sizeof d->name, "Fake GPU");
    snprintf(d->uuid, sizeof d->uuid, "GPU-%08x-fake-4000-8000-%012x", 0xfa4e0000u + (u32)index, (u32)index);
    snprintf(d->bus_id, sizeof d->bus_id, "00000000:%02X:00.0", index + 1);
    d->minor = (u32)index;
    d->cc_major = 8;
    d->arch = 0;             /* 0: derive from cc */
    d->brand = 14;
    d->mem_ok = 1; d->mem_total = 16ull << 30; d->mem_reserved = 512ull << 20;
    d->temp_ok = 1; d->temp = 40; d->temp_slow = 90; d->temp_shut = 95;
    d->power_ok = 1; d->power_mw = 50000; d->limit_mw = 300000;
    d->reasons_ok = 1; d->reasons_supported = 0x1ff;
    d->persistence_ok = 1;
    d->util_ok = 1;
    d->event_types = 0x8 | 0x1 | 0x2 | 0x4;
    for (int i = 1; i < 5; i++) d->histogram[i] = 0;
    d->histogram[0] = 640;
}

static int is_none(const char *v) { return !strcasecmp(v, "none") || !strcasecmp(v, "n/a"); }

static int set_device(device_t *d, const char *k, char *v)
{
    u64 n[MAX_PAGES];
    int c;
#define STR(key, field) if (!strcmp(k, key)) { copy(d->field, sizeof d->field, v); return 1; }
#define NUM(key, field) if (!strcmp(k, key)) { if (numbers(v, n, 1) != 1) return 0; d->field = n[0]; return 1; }
    STR("name", name) STR("uuid", uuid) STR("bus_id", bus_id) STR("serial", serial)
    NUM("pci_device_id", pci_device_id) NUM("pci_subsystem_id", pci_subsystem_id)
    NUM("minor", minor) NUM("brand", brand) NUM("arch", arch) NUM("cores", cores)
    NUM("compute_mode", compute_mode) NUM("pstate", pstate) NUM("virt_mode", virt_mode)
    NUM("event_types", event_types) NUM("reasons_supported", reasons_supported)
    NUM("retired_pending", retired_pending) NUM("temp_slowdown", temp_slow) NUM("temp_shutdown", temp_shut)
    if (!strcmp(k, "cc")) return sscanf(v, "%d.%d", &d->cc_major, &d->cc_minor) == 2;
    if (!strcmp(k, "memory")) {         /* total [, used [, reserved]] */
        if (is_none(v)) { d->mem_ok = 0; return 1; }
        d->mem_ok = 1;
        char *save = NULL, *p = strtok_r(v, ",", &save);
        u64 *dst[3] = {&d->mem_total, &d->mem_used, &d->mem_reserved};
        for (int i = 0; p && i < 3; i++, p = strtok_r(NULL, ",", &save))
            if (!bytes(trim(p), dst[i])) return 0;
        return 1;
    }
    if (!strcmp(k, "ecc")) {            /* none | on | off | current,pending */
        d->ecc_ok = 1;
        if (is_none(v)) { d->ecc_ok = 0; return 1; }
        if (!strcmp(v, "on")) { d->ecc_cur = d->ecc_pend = 1; return 1; }
        if (!strcmp(v, "off")) { d->ecc_cur = d->ecc_pend = 0; return 1; }
        if (numbers(v, n, 2) != 2) return 0;
        d->ecc_cur = (u32)n[0]; d->ecc_pend = (u32)n[1];
        return 1;
    }
    /* ecc_errors = corrected volatile, corrected aggregate, uncorrected volatile, uncorrected aggregate */
    if (!strcmp(k, "ecc_errors") || !strcmp(k, "ecc_sram_errors")) {
        u64 (*t)[2] = k[4] == 's' ? d->ecc_sram : d->ecc;
        if (numbers(v, n, 4) != 4) return 0;
        t[0][0] = n[0]; t[0][1] = n[1]; t[1][0] = n[2]; t[1][1] = n[3];
        return 1;
    }
    if (!strcmp(k, "retired_sbe") || !strcmp(k, "retired_dbe")) {  /* none | list of page addresses */
        int which = k[8] == 'd';
        if (is_none(v)) { d->retired_ok = 0; return 1; }
        d->retired_ok = 1;
        c = numbers(v, n, MAX_PAGES);
        if (c < 0) return 0;
        for (int i = 0; i < c; i++) d->retired[which][i] = n[i];
        d->n_retired[which] = (u32)c;
        return 1;
    }
    if (!strcmp(k, "remapped_rows")) {  /* none | corrected, uncorrected, pending, failure */
        if (is_none(v)) { d->remap_ok = 0; return 1; }
        if (numbers(v, n, 4) != 4) return 0;
        for (int i = 0; i < 4; i++) d->remap[i] = (u32)n[i];
        d->remap_ok = 1;
        return 1;
    }
    if (!strcmp(k, "remap_histogram")) { /* max, high, partial, low, none */
        if (numbers(v, n, 5) != 5) return 0;
        for (int i = 0; i < 5; i++) d->histogram[i] = (u32)n[i];
        return 1;
    }
    if (!strcmp(k, "repair")) {
        if (is_none(v)) { d->repair_ok = 0; return 1; }
        if (numbers(v, n, 2) != 2) return 0;
        d->repair[0] = (u32)n[0]; d->repair[1] = (u32)n[1]; d->repair_ok = 1;
        return 1;
    }
    if (!strcmp(k, "temperature")) { d->temp_ok = !is_none(v); d->temp = atoi(v); return 1; }
    if (!strcmp(k, "margin")) { d->margin_ok = !is_none(v); d->margin = atoi(v); return 1; }
    if (!strcmp(k, "memory_temperature")) { d->mem_temp_ok = !is_none(v); d->mem_temp = atoi(v); return 1; }
    if (!strcmp(k, "power_mw")) {       /* none | usage [, limit] */
        if (is_none(v)) { d->power_ok = 0; return 1; }
        c = numbers(v, n, 2);
        if (c < 1) return 0;
        d->power_mw = (u32)n[0];
        if (c > 1) d->limit_mw = (u32)n[1];
        return 1;
    }
    if (!strcmp(k, "clocks_event_reasons")) {
        if (is_none(v)) { d->reasons_ok = 0; return 1; }
        if (numbers(v, n, 1) != 1) return 0;
        d->reasons = n[0];
        return 1;
    }
    if (!strcmp(k, "persistence")) { d->persistence_ok = !is_none(v); d->persistence = (u32)atoi(v); return 1; }
    if (!strcmp(k, "utilization")) {
        if (is_none(v)) { d->util_ok = 0; return 1; }
        if (numbers(v, n, 2) != 2) return 0;
        d->util_gpu = (u32)n[0]; d->util_mem = (u32)n[1];
        return 1;
    }
    if (!strcmp(k, "sram_threshold")) { d->sram_threshold = (u32)atoi(v); return 1; }
    if (!strcmp(k, "recovery_action")) { d->recovery_ok = !is_none(v); d->recovery = (u32)atoi(v); return 1; }
    if (!strcmp(k, "mig")) {            /* none | current, pending */
        if (is_none(v)) { d->mig_ok = 0; return 1; }
        if (numbers(v, n, 2) != 2) return 0;
        d->mig_cur = (u32)n[0]; d->mig_pend = (u32)n[1]; d->mig_ok = 1;
        return 1;
    }
    if (!strcmp(k, "xid")) {
        c = numbers(v, n, MAX_XID);
        if (c < 0) return 0;
        for (int i = 0; i < c && d->n_xid < MAX_XID; i++) d->xid[d->n_xid++] = (u32)n[i];
        return 1;
    }
    if (!strcmp(k, "process") || !strcmp(k, "graphics_process")) { /* pid, used | none, [name] */
        if (d->n_proc == MAX_PROC) return 0;
        proc_t *p = &d->proc[d->n_proc];
        memset(p, 0, sizeof *p);
        p->gi = p->ci = 0xffffffffu;
        p->graphics = k[0] == 'g';
        char *save = NULL, *a = strtok_r(v, ",", &save), *b = strtok_r(NULL, ",", &save), *nm = strtok_r(NULL, ",", &save);
        if (!a || !b) return 0;
        p->pid = (u32)strtoul(a, NULL, 0);
        b = trim(b);
        if (is_none(b)) p->used = ~0ull;
        else if (!bytes(b, &p->used)) return 0;
        copy(p->name, sizeof p->name, nm ? trim(nm) : "");
        d->n_proc++;
        return 1;
    }
    if (!strcmp(k, "mig_device")) {     /* uuid, gi, ci, memory, slices, name */
        if (d->n_mig == MAX_MIG) return 0;
        device_t *m = &S.mig_pool[S.n_mig_pool++];
        defaults(m, d->n_mig);
        m->is_mig = 1;
        m->parent = d;
        char *f[6] = {0}, *save = NULL, *p = strtok_r(v, ",", &save);
        for (int i = 0; p && i < 6; i++, p = strtok_r(NULL, i == 5 ? "" : ",", &save)) f[i] = trim(p);
        if (!f[5] || !bytes(f[3], &m->mem_total)) return 0;
        copy(m->uuid, sizeof m->uuid, f[0]);
        m->gi = (u32)atoi(f[1]); m->ci = (u32)atoi(f[2]); m->slices = (u32)atoi(f[4]);
        copy(m->name, sizeof m->name, f[5]);
        m->mem_reserved = 0;
        d->mig[d->n_mig++] = m;
        return 1;
    }
    if (!strncmp(k, "field.", 6)) {     /* field.ID = number | d:double | ERROR_NAME */
        if (d->n_field == MAX_FIELD) return 0;
        field_t *fv = &d->field[d->n_field];
        memset(fv, 0, sizeof *fv);
        fv->id = (u32)atoi(k + 6);
        if (!strncmp(v, "d:", 2)) { fv->is_double = 1; fv->d = atof(v + 2); }
        else if (numbers(v, n, 1) == 1) fv->u = n[0];
        else if (!error_code(v, &fv->code)) return 0;
        d->n_field++;
        return 1;
    }
    if (!strncmp(k, "error.", 6)) return add_inject(&d->inj, k + 6, v);
    return 0;
}

static int set_system(const char *k, char *v)
{
    if (!strcmp(k, "driver_version")) { copy(S.driver, sizeof S.driver, v); return 1; }
    if (!strcmp(k, "nvml_version")) { copy(S.nvml, sizeof S.nvml, v); return 1; }
    if (!strcmp(k, "cuda_version")) {   /* "13.0" or 13000 */
        int a, b;
        if (sscanf(v, "%d.%d", &a, &b) == 2) S.cuda = a * 1000 + b * 10;
        else if (is_none(v)) S.no_libcuda = 1;
        else S.cuda = atoi(v);
        return 1;
    }
    if (!strncmp(k, "error.", 6)) return add_inject(&S.inj, k + 6, v);
    if (!strcmp(k, "missing")) {        /* functions that this "old driver" lacks */
        char *save = NULL, nf[] = "FUNCTION_NOT_FOUND";
        for (char *p = strtok_r(v, ", ", &save); p; p = strtok_r(NULL, ", ", &save))
            if (!add_inject(&S.inj, p, nf)) return 0;
        return 1;
    }
    return 0;
}

static int load_spec(void)
{
    S.n_dev = S.n_mig_pool = S.inj.n = 0;
    S.no_libcuda = 0;
    copy(S.driver, sizeof S.driver, "580.82.07");
    copy(S.nvml, sizeof S.nvml, "13.580.82.07");
    S.cuda = 13000;
    const char *path = getenv("FAKE_NVML_SPEC");
    if (!path || !*path) return E_NODRIVER;
    FILE *f = fopen(path, "r");
    if (!f) { complain("%s: %s", path, strerror(errno)); return E_UNKNOWN; }
    char line[1024];
    int no = 0, bad = 0;
    device_t *d = NULL;
    while (fgets(line, sizeof line, f)) {
        no++;
        char *hash = strchr(line, '#');
        if (hash) *hash = 0;
        char *s = trim(line);
        if (!*s) continue;
        if (*s == '[') {
            if (!strncmp(s, "[system", 7)) d = NULL;
            else if (!strncmp(s, "[device", 7) && S.n_dev < MAX_DEV) { d = &S.dev[S.n_dev]; defaults(d, S.n_dev); S.n_dev++; }
            else { complain("%s:%d: unknown section or too many devices: %s", path, no, s); bad = 1; }
            continue;
        }
        char *eq = strchr(s, '=');
        if (!eq) { complain("%s:%d: expected key = value", path, no); bad = 1; continue; }
        *eq = 0;
        char *k = trim(s), *v = trim(eq + 1);
        if (!(d ? set_device(d, k, v) : set_system(k, v))) {
            complain("%s:%d: cannot use %s = %s", path, no, k, v);
            bad = 1;
        }
    }
    fclose(f);
    if (bad) return E_UNKNOWN;
    for (int i = 0; i < S.n_dev; i++) if (!S.dev[i].arch) S.dev[i].arch = arch_of_cc(S.dev[i].cc_major, S.dev[i].cc_minor);
    for (int i = 0; i < S.n_mig_pool; i++) {
        device_t *m = &S.mig_pool[i], *p = m->parent;
        m->cc_major = p->cc_major; m->cc_minor = p->cc_minor; m->arch = p->arch; m->brand = p->brand;
        copy(m->bus_id, sizeof m->bus_id, p->bus_id);
    }
    return OK;
}

/* ---- start and stop ---------------------------------------------------- */

static ret_t start(const char *fn)
{
    int code = OK;
    pthread_mutex_lock(&S.lock);
    if (!S.refs) {
        code = load_spec();
        inject_t *i = find_inject(&S.inj, "nvmlInit");
        if (i && !strcmp(i->fn, "*")) i = NULL;
        if (!code && i) code = apply(i);
    }
    if (!code) S.refs++;
    pthread_mutex_unlock(&S.lock);
    log_call(fn, NULL, code);
    return code;
}
EXPORT ret_t nvmlInit(void) { return start(__func__); }
EXPORT ret_t nvmlInit_v2(void) { return start(__func__); }
EXPORT ret_t nvmlInitWithFlags(u32 flags) { (void)flags; return start(__func__); }
EXPORT ret_t nvmlShutdown(void)
{
    int code = OK;
    pthread_mutex_lock(&S.lock);
    if (S.refs) S.refs--; else code = E_UNINIT;
    pthread_mutex_unlock(&S.lock);
    log_call(__func__, NULL, code);
    return code;
}
EXPORT const char *nvmlErrorString(ret_t r)
{
    for (size_t i = 0; i < N_ERRORS; i++) if (ERRORS[i].code == r) return ERRORS[i].text;
    return "Unknown Error";
}

/* ---- system ------------------------------------------------------------ */

EXPORT ret_t nvmlSystemGetDriverVersion(char *v, u32 len) { SYS(); return out_string(v, len, S.driver); }
EXPORT ret_t nvmlSystemGetNVMLVersion(char *v, u32 len) { SYS(); return out_string(v, len, S.nvml); }
EXPORT ret_t nvmlSystemGetCudaDriverVersion(int *v) { SYS(); NEED(v, E_ARG); *v = S.cuda; return OK; }
EXPORT ret_t nvmlSystemGetCudaDriverVersion_v2(int *v) { SYS(); NEED(v, E_ARG); NEED(!S.no_libcuda, 12); *v = S.cuda; return OK; }
EXPORT ret_t nvmlSystemGetProcessName(u32 pid, char *name, u32 len)
{
    SYS();
    for (int i = 0; i < S.n_dev; i++)
        for (int j = 0; j < S.dev[i].n_proc; j++)
            if (S.dev[i].proc[j].pid == pid) { snprintf(name, len, "%s", S.dev[i].proc[j].name); return OK; }
    return E_NOTFOUND;
}
EXPORT ret_t nvmlDeviceGetCount_v2(u32 *n) { SYS(); NEED(n, E_ARG); *n = (u32)S.n_dev; return OK; }
EXPORT ret_t nvmlDeviceGetCount(u32 *n) { SYS(); NEED(n, E_ARG); *n = (u32)S.n_dev; return OK; }

/* ---- handles ----------------------------------------------------------- */

static ret_t give(const char *fn, device_t *d, device_t **out)
{
    int code = gate(fn, d, 1);
    if (!code) *out = d;
    return code;
}
static ret_t by_index(const char *fn, u32 i, device_t **out)
{
    if (!S.refs) return gate(fn, NULL, 0);
    NEED(out && i < (u32)S.n_dev, E_ARG);
    return give(fn, &S.dev[i], out);
}
EXPORT ret_t nvmlDeviceGetHandleByIndex_v2(u32 i, device_t **out) { return by_index(__func__, i, out); }
EXPORT ret_t nvmlDeviceGetHandleByIndex(u32 i, device_t **out) { return by_index(__func__, i, out); }
EXPORT ret_t nvmlDeviceGetHandleByUUID(const char *uuid, device_t **out)
{
    SYS();
    NEED(uuid && out, E_ARG);
    for (int i = 0; i < S.n_dev; i++) if (!strcmp(S.dev[i].uuid, uuid)) return give(__func__, &S.dev[i], out);
    for (int i = 0; i < S.n_mig_pool; i++) if (!strcmp(S.mig_pool[i].uuid, uuid)) return give(__func__, &S.mig_pool[i], out);
    return E_NOTFOUND;
}
EXPORT ret_t nvmlDeviceGetHandleBySerial(const char *serial, device_t **out)
{
    SYS();
    NEED(serial && out, E_ARG);
    for (int i = 0; i < S.n_dev; i++) if (*S.dev[i].serial && !strcmp(S.dev[i].serial, serial)) return give(__func__, &S.dev[i], out);
    return E_NOTFOUND;
}
static int same_bus(const char *a, const char *b)
{
    u32 x[4], y[4];
    if (sscanf(a, "%x:%x:%x.%x", &x[0], &x[1], &x[2], &x[3]) < 3 || sscanf(b, "%x:%x:%x.%x", &y[0], &y[1], &y[2], &y[3]) < 3) return 0;
    return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}
static ret_t by_bus(const char *fn, const char *id, device_t **out)
{
    int g = gate(fn, NULL, 0);
    if (g) return g;
    NEED(id && out, E_ARG);
    for (int i = 0; i < S.n_dev; i++) if (same_bus(S.dev[i].bus_id, id)) return give(fn, &S.dev[i], out);
    return E_NOTFOUND;
}
EXPORT ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, device_t **out) { return by_bus(__func__, id, out); }
EXPORT ret_t nvmlDeviceGetHandleByPciBusId(const char *id, device_t **out) { return by_bus(__func__, id, out); }

/* ---- identity ---------------------------------------------------------- */

EXPORT ret_t nvmlDeviceGetName(device_t *d, char *b, u32 len) { DEV(d); return out_string(b, len, d->name); }
EXPORT ret_t nvmlDeviceGetUUID(device_t *d, char *b, u32 len) { DEV(d); return out_string(b, len, d->uuid); }
EXPORT ret_t nvmlDeviceGetSerial(device_t *d, char *b, u32 len) { DEV(d); NEED(*d->serial, E_NOTSUP); return out_string(b, len, d->serial); }
EXPORT ret_t nvmlDeviceGetIndex(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); *v = (u32)d->index; return OK; }
EXPORT ret_t nvmlDeviceGetMinorNumber(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); NO_MIG_HANDLE(d); *v = d->minor; return OK; }
EXPORT ret_t nvmlDeviceGetBrand(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); *v = d->brand; return OK; }
EXPORT ret_t nvmlDeviceGetArchitecture(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); *v = d->arch; return OK; }
EXPORT ret_t nvmlDeviceGetNumGpuCores(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); NEED(d->cores, E_NOTSUP); *v = d->cores; return OK; }
EXPORT ret_t nvmlDeviceGetCudaComputeCapability(device_t *d, int *major, int *minor)
{
    DEV(d);
    NEED(major && minor, E_ARG);
    *major = d->cc_major; *minor = d->cc_minor;
    return OK;
}
typedef struct { char legacy[16]; u32 domain, bus, device, pci_device_id, pci_subsystem_id; char bus_id[32]; } pci_t;
static ret_t pci_info(device_t *d, pci_t *p)
{
    u32 dom = 0, bus = 0, dev = 0, fun = 0;
    NEED(p, E_ARG);
    memset(p, 0, sizeof *p);
    sscanf(d->bus_id, "%x:%x:%x.%x", &dom, &bus, &dev, &fun);
    snprintf(p->legacy, sizeof p->legacy, "%04X:%02X:%02X.%X", dom & 0xffff, bus & 0xff, dev & 0xff, fun & 0xf);
    copy(p->bus_id, sizeof p->bus_id, d->bus_id);
    p->domain = dom; p->bus = bus; p->device = dev;
    p->pci_device_id = d->pci_device_id; p->pci_subsystem_id = d->pci_subsystem_id;
    return OK;
}
EXPORT ret_t nvmlDeviceGetPciInfo_v3(device_t *d, pci_t *p) { DEV(d); return pci_info(d, p); }

/* ---- memory, processes ------------------------------------------------- */

typedef struct { u64 total, free, used; } mem1_t;
typedef struct { u32 version; u64 total, reserved, free, used; } mem2_t;
EXPORT ret_t nvmlDeviceGetMemoryInfo(device_t *d, mem1_t *m)
{
    DEV(d);
    NEED(m, E_ARG);
    NEED(d->mem_ok, E_NOTSUP);
    m->total = d->mem_total; m->used = d->mem_used + d->mem_reserved;   /* v1 counts the reserve as used */
    m->free = m->total > m->used ? m->total - m->used : 0;
    return OK;
}
EXPORT ret_t nvmlDeviceGetMemoryInfo_v2(device_t *d, mem2_t *m)
{
    DEV(d);
    NEED(m, E_ARG);
    NEED(m->version == (sizeof(mem2_t) | 2u << 24), E_VERSION);
    NEED(d->mem_ok, E_NOTSUP);
    m->total = d->mem_total; m->reserved = d->mem_reserved; m->used = d->mem_used;
    m->free = m->total > m->used + m->reserved ? m->total - m->used - m->reserved : 0;
    return OK;
}
typedef struct { u32 pid; u64 used; } proc1_t;
typedef struct { u32 pid; u64 used; u32 gi, ci; } proc2_t;
static ret_t processes(device_t *d, u32 *count, void *out, int graphics, int v1)
{
    NEED(count, E_ARG);
    device_t *src = d->is_mig ? d->parent : d;
    u32 n = 0;
    for (int i = 0; i < src->n_proc; i++) n += src->proc[i].graphics == graphics;
    if (*count < n) { *count = n; return E_SIZE; }
    NEED(out || !n, E_ARG);
    *count = n;
    n = 0;
    for (int i = 0; i < src->n_proc; i++) {
        proc_t *p = &src->proc[i];
        if (p->graphics != graphics) continue;
        if (v1) ((proc1_t *)out)[n] = (proc1_t){p->pid, p->used};
        else ((proc2_t *)out)[n] = (proc2_t){p->pid, p->used, p->gi, p->ci};
        n++;
    }
    return OK;
}
#define PROCS(name, graphics, v1) EXPORT ret_t name(device_t *d, u32 *n, void *o) { DEV(d); return processes(d, n, o, graphics, v1); }
PROCS(nvmlDeviceGetComputeRunningProcesses, 0, 1)
PROCS(nvmlDeviceGetComputeRunningProcesses_v2, 0, 0)
PROCS(nvmlDeviceGetComputeRunningProcesses_v3, 0, 0)
PROCS(nvmlDeviceGetGraphicsRunningProcesses, 1, 1)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v2, 1, 0)
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v3, 1, 0)
typedef struct { u32 gpu, memory; } util_t;
EXPORT ret_t nvmlDeviceGetUtilizationRates(device_t *d, util_t *u)
{
    DEV(d);
    NEED(u, E_ARG);
    NEED(d->util_ok && !d->is_mig && !d->mig_cur, E_NOTSUP);
    u->gpu = d->util_gpu; u->memory = d->util_mem;
    return OK;
}

/* ---- ECC, retired pages, remapped rows --------------------------------- */

EXPORT ret_t nvmlDeviceGetEccMode(device_t *d, u32 *cur, u32 *pend)
{
    DEV(d);
    NEED(cur && pend, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(d->ecc_ok, E_NOTSUP);
    *cur = d->ecc_cur; *pend = d->ecc_pend;
    return OK;
}
EXPORT ret_t nvmlDeviceGetTotalEccErrors(device_t *d, u32 type, u32 counter, u64 *out)
{
    DEV(d);
    NEED(out && type < 2 && counter < 2, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(d->ecc_ok && d->ecc_cur, E_NOTSUP);
    *out = d->ecc[type][counter];
    return OK;
}
/* location: 2 = device memory (all of ecc_errors), 7 = SRAM (ecc_sram_errors), others none */
EXPORT ret_t nvmlDeviceGetMemoryErrorCounter(device_t *d, u32 type, u32 counter, u32 location, u64 *out)
{
    DEV(d);
    NEED(out && type < 2 && counter < 2 && location < 8, E_ARG);
    device_t *src = d->is_mig ? d->parent : d;
    NEED(src->ecc_ok && src->ecc_cur, E_NOTSUP);
    if (location == 2) *out = src->ecc[type][counter];
    else if (location == 7) *out = src->ecc_sram[type][counter];
    else return E_NOTSUP;
    return OK;
}
static ret_t retired(device_t *d, u32 cause, u32 *count, u64 *addr, u64 *when, int v2)
{
    NEED(count && cause < 2, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(d->retired_ok, E_NOTSUP);
    u32 n = d->n_retired[cause];
    if (*count < n) { *count = n; return E_SIZE; }
    *count = n;
    NEED(addr || !n, E_ARG);
    for (u32 i = 0; i < n; i++) {
        addr[i] = d->retired[cause][i];
        if (v2 && when) when[i] = 1700000000ull + i;
    }
    return OK;
}
EXPORT ret_t nvmlDeviceGetRetiredPages(device_t *d, u32 cause, u32 *n, u64 *addr) { DEV(d); return retired(d, cause, n, addr, NULL, 0); }
/* pynvml leaves the last argument out of its first (sizing) call, so `when` is only touched when pages are copied */
EXPORT ret_t nvmlDeviceGetRetiredPages_v2(device_t *d, u32 cause, u32 *n, u64 *addr, u64 *when) { DEV(d); return retired(d, cause, n, addr, when, 1); }
EXPORT ret_t nvmlDeviceGetRetiredPagesPendingStatus(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); NEED(d->retired_ok, E_NOTSUP); *v = d->retired_pending; return OK; }
static int remap_usable(device_t *d) { return d->remap_ok && !d->is_mig && !(d->mig_cur && d->n_mig); }
EXPORT ret_t nvmlDeviceGetRemappedRows(device_t *d, u32 *corr, u32 *unc, u32 *pending, u32 *failure)
{
    DEV(d);
    NEED(corr && unc && pending && failure, E_ARG);
    NEED(remap_usable(d), E_NOTSUP);
    *corr = d->remap[0]; *unc = d->remap[1]; *pending = d->remap[2]; *failure = d->remap[3];
    return OK;
}
typedef struct { u32 corr_active, corr_inactive, unc_active, unc_inactive, pending, failure; } remap2_t;
EXPORT ret_t nvmlDeviceGetRemappedRows_v2(device_t *d, remap2_t *r)
{
    DEV(d);
    NEED(r, E_ARG);
    NEED(remap_usable(d), E_NOTSUP);
    *r = (remap2_t){d->remap[0], 0, d->remap[1], 0, d->remap[2], d->remap[3]};
    return OK;
}
typedef struct { u32 max, high, partial, low, none; } hist_t;
EXPORT ret_t nvmlDeviceGetRowRemapperHistogram(device_t *d, hist_t *h)
{
    DEV(d);
    NEED(h, E_ARG);
    NEED(remap_usable(d), E_NOTSUP);
    *h = (hist_t){d->histogram[0], d->histogram[1], d->histogram[2], d->histogram[3], d->histogram[4]};
    return OK;
}
typedef struct { u32 version, channel, tpc; } repair_t;
EXPORT ret_t nvmlDeviceGetRepairStatus(device_t *d, repair_t *r)
{
    DEV(d);
    NEED(r, E_ARG);
    NEED(r->version == (sizeof(repair_t) | 1u << 24), E_VERSION);
    NEED(d->repair_ok, E_NOTSUP);
    r->channel = d->repair[0]; r->tpc = d->repair[1];
    return OK;
}
typedef struct { u32 version; u64 agg_parity, agg_secded, agg_cor, vol_parity, vol_secded, vol_cor, l2, sm, pcie, mcu, other; u32 threshold; } sram_t;
EXPORT ret_t nvmlDeviceGetSramEccErrorStatus(device_t *d, sram_t *s)
{
    DEV(d);
    NEED(s, E_ARG);
    NEED(s->version == (sizeof(sram_t) | 1u << 24), E_VERSION);
    NEED(d->ecc_ok && d->arch >= 7, E_NOTSUP);
    u32 v = s->version;
    memset(s, 0, sizeof *s);
    s->version = v;
    s->agg_secded = d->ecc_sram[1][1]; s->agg_cor = d->ecc_sram[0][1];
    s->vol_secded = d->ecc_sram[1][0]; s->vol_cor = d->ecc_sram[0][0];
    s->other = d->ecc_sram[1][1];
    s->threshold = d->sram_threshold;
    return OK;
}

/* ---- temperature, power, clocks, modes --------------------------------- */

EXPORT ret_t nvmlDeviceGetTemperature(device_t *d, u32 sensor, u32 *t)
{
    DEV(d);
    NEED(t, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(sensor == 0, E_ARG);
    NEED(d->temp_ok, E_NOTSUP);
    *t = (u32)d->temp;
    return OK;
}
typedef struct { u32 version, sensor; int temperature; } tempv_t;
EXPORT ret_t nvmlDeviceGetTemperatureV(device_t *d, tempv_t *t)
{
    DEV(d);
    NEED(t, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(t->version == (sizeof(tempv_t) | 1u << 24), E_VERSION);
    NEED(d->temp_ok, E_NOTSUP);
    t->temperature = d->temp;
    return OK;
}
EXPORT ret_t nvmlDeviceGetTemperatureThreshold(device_t *d, u32 which, u32 *t)
{
    DEV(d);
    NEED(t && which < 8, E_ARG);
    NO_MIG_HANDLE(d);
    if (which == 0 && d->temp_shut) *t = (u32)d->temp_shut;
    else if (which == 1 && d->temp_slow) *t = (u32)d->temp_slow;
    else return E_NOTSUP;
    return OK;
}
typedef struct { u32 version; int margin; } margin_t;
EXPORT ret_t nvmlDeviceGetMarginTemperature(device_t *d, margin_t *m)
{
    DEV(d);
    NEED(m, E_ARG);
    NEED(m->version == (sizeof(margin_t) | 1u << 24), E_VERSION);
    NEED(d->margin_ok, E_NOTSUP);
    m->margin = d->margin;
    return OK;
}
#define U32_IF(fn, ok, value) EXPORT ret_t fn(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); NO_MIG_HANDLE(d); NEED(ok, E_NOTSUP); *v = (value); return OK; }
U32_IF(nvmlDeviceGetPowerUsage, d->power_ok, d->power_mw)
U32_IF(nvmlDeviceGetPowerManagementLimit, d->power_ok && d->limit_mw, d->limit_mw)
U32_IF(nvmlDeviceGetEnforcedPowerLimit, d->power_ok && d->limit_mw, d->limit_mw)
U32_IF(nvmlDeviceGetPersistenceMode, d->persistence_ok, d->persistence)
U32_IF(nvmlDeviceGetPerformanceState, 1, d->pstate)
U32_IF(nvmlDeviceGetPowerState, 1, d->pstate)
EXPORT ret_t nvmlDeviceGetComputeMode(device_t *d, u32 *v)
{
    DEV(d);
    NEED(v, E_ARG);
    *v = d->is_mig ? d->parent->compute_mode : d->compute_mode;
    return OK;
}
static ret_t reasons(device_t *d, u64 *v, int supported)
{
    NEED(v, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(d->reasons_ok, E_NOTSUP);
    *v = supported ? d->reasons_supported : d->reasons;
    return OK;
}
EXPORT ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t *d, u64 *v) { DEV(d); return reasons(d, v, 0); }
EXPORT ret_t nvmlDeviceGetSupportedClocksEventReasons(device_t *d, u64 *v) { DEV(d); return reasons(d, v, 1); }
EXPORT ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t *d, u64 *v) { DEV(d); return reasons(d, v, 0); }
EXPORT ret_t nvmlDeviceGetSupportedClocksThrottleReasons(device_t *d, u64 *v) { DEV(d); return reasons(d, v, 1); }
EXPORT ret_t nvmlDeviceGetVirtualizationMode(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); *v = d->virt_mode; return OK; }
EXPORT ret_t nvmlDeviceGetDriverModel_v2(device_t *d, u32 *c, u32 *p) { (void)c; (void)p; DEV(d); return E_NOTSUP; }
EXPORT ret_t nvmlDeviceGetDriverModel(device_t *d, u32 *c, u32 *p) { (void)c; (void)p; DEV(d); return E_NOTSUP; }

/* ---- MIG --------------------------------------------------------------- */

EXPORT ret_t nvmlDeviceGetMigMode(device_t *d, u32 *cur, u32 *pend)
{
    DEV(d);
    NEED(cur && pend, E_ARG);
    NO_MIG_HANDLE(d);
    NEED(d->mig_ok, E_NOTSUP);
    *cur = d->mig_cur; *pend = d->mig_pend;
    return OK;
}
EXPORT ret_t nvmlDeviceGetMaxMigDeviceCount(device_t *d, u32 *n) { DEV(d); NEED(n, E_ARG); *n = d->mig_ok && d->mig_cur ? 7 : 0; return OK; }
EXPORT ret_t nvmlDeviceGetMigDeviceHandleByIndex(device_t *d, u32 i, device_t **out)
{
    DEV(d);
    NEED(out, E_ARG);
    NEED(d->mig_ok && d->mig_cur, E_NOTSUP);
    NEED(i < (u32)d->n_mig, E_NOTFOUND);
    *out = d->mig[i];
    return OK;
}
EXPORT ret_t nvmlDeviceIsMigDeviceHandle(device_t *d, u32 *v) { DEV(d); NEED(v, E_ARG); *v = (u32)d->is_mig; return OK; }
EXPORT ret_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t *d, device_t **out) { DEV(d); NEED(out && d->is_mig, E_ARG); *out = d->parent; return OK; }
EXPORT ret_t nvmlDeviceGetGpuInstanceId(device_t *d, u32 *v) { DEV(d); NEED(v && d->is_mig, E_ARG); *v = d->gi; return OK; }
EXPORT ret_t nvmlDeviceGetComputeInstanceId(device_t *d, u32 *v) { DEV(d); NEED(v && d->is_mig, E_ARG); *v = d->ci; return OK; }
typedef struct { u32 sm, ce, dec, enc, jpeg, ofa, gi_slices, ci_slices; u64 memory_mb; } attr_t;
EXPORT ret_t nvmlDeviceGetAttributes_v2(device_t *d, attr_t *a)
{
    DEV(d);
    NEED(a, E_ARG);
    NEED(d->is_mig, E_NOTSUP);
    *a = (attr_t){14 * d->slices, d->slices, 0, 0, 0, 0, d->slices, d->slices, d->mem_total >> 20};
    return OK;
}

/* ---- field values ------------------------------------------------------ */

typedef union { double d; u32 u; u64 ull; } value_t;
typedef struct { u32 id, scope; long long timestamp, latency; u32 type, code; value_t value; } fval_t;
enum { T_DOUBLE = 0, T_U32 = 1, T_U64 = 3 };
static void fill(device_t *d, fval_t *f)
{
    for (int i = 0; i < d->n_field; i++)
        if (d->field[i].id == f->id) {
            f->code = (u32)d->field[i].code;
            f->type = d->field[i].is_double ? T_DOUBLE : T_U64;
            if (d->field[i].is_double) f->value.d = d->field[i].d; else f->value.ull = d->field[i].u;
            return;
        }
    int ecc = d->ecc_ok, on = d->ecc_ok && d->ecc_cur;
    f->code = E_NOTSUP;
    f->type = T_U64;
#define F(n, ok, t, m, v) case n: if (ok) { f->code = OK; f->type = t; f->value.m = (v); } break;
    switch (f->id) {
    F(1, ecc, T_U32, u, d->ecc_cur) F(2, ecc, T_U32, u, d->ecc_pend)
    F(3, on, T_U64, ull, d->ecc[0][0]) F(4, on, T_U64, ull, d->ecc[1][0])
    F(5, on, T_U64, ull, d->ecc[0][1]) F(6, on, T_U64, ull, d->ecc[1][1])
    F(29, d->retired_ok, T_U32, u, d->n_retired[0]) F(30, d->retired_ok, T_U32, u, d->n_retired[1])
    F(31, d->retired_ok, T_U32, u, d->retired_pending)
    F(82, d->mem_temp_ok, T_U32, u, (u32)d->mem_temp)
    F(142, remap_usable(d), T_U32, u, d->remap[0]) F(143, remap_usable(d), T_U32, u, d->remap[1])
    F(144, remap_usable(d), T_U32, u, d->remap[2]) F(145, remap_usable(d), T_U32, u, d->remap[3])
    F(185, d->power_ok, T_U32, u, d->power_mw) F(186, d->power_ok, T_U32, u, d->power_mw)
    F(230, d->recovery_ok, T_U32, u, d->recovery)
    }
#undef F
}
EXPORT ret_t nvmlDeviceGetFieldValues(device_t *d, int n, fval_t *f)
{
    DEV(d);
    NEED(f && n > 0, E_ARG);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < n; i++) {
        memset(&f[i].value, 0, sizeof f[i].value);
        f[i].timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
        f[i].latency = 1;
        fill(d, &f[i]);
    }
    return OK;
}

/* ---- events (Xid) ------------------------------------------------------ */

typedef struct { device_t *dev[MAX_DEV]; u64 types[MAX_DEV]; int n; } evset_t;
typedef struct { device_t *device; u64 type, data; u32 gi, ci; } event_t;
EXPORT ret_t nvmlDeviceGetSupportedEventTypes(device_t *d, u64 *t) { DEV(d); NEED(t, E_ARG); *t = d->event_types; return OK; }
EXPORT ret_t nvmlEventSetCreate(evset_t **out) { SYS(); NEED(out, E_ARG); *out = calloc(1, sizeof **out); return *out ? OK : 20; }
EXPORT ret_t nvmlEventSetFree(evset_t *s) { SYS(); NEED(s, E_ARG); free(s); return OK; }
EXPORT ret_t nvmlDeviceRegisterEvents(device_t *d, u64 types, evset_t *s)
{
    DEV(d);
    NEED(s && s->n < MAX_DEV, E_ARG);
    NEED(!(types & ~d->event_types), E_NOTSUP);
    s->dev[s->n] = d; s->types[s->n] = types; s->n++;
    return OK;
}
static ret_t wait_event(evset_t *s, event_t *e, u32 timeout_ms, int v1)
{
    NEED(s && e, E_ARG);
    for (int i = 0; i < s->n; i++) {
        device_t *d = s->dev[i];
        if (!(s->types[i] & 0x8) || d->next_xid >= d->n_xid) continue;
        e->device = d; e->type = 0x8; e->data = d->xid[d->next_xid++];
        if (!v1) e->gi = e->ci = 0xffffffffu;
        return OK;
    }
    struct timespec t = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};
    nanosleep(&t, NULL);
    return E_TIMEOUT;
}
EXPORT ret_t nvmlEventSetWait_v2(evset_t *s, event_t *e, u32 ms) { SYS(); return wait_event(s, e, ms, 0); }
EXPORT ret_t nvmlEventSetWait(evset_t *s, event_t *e, u32 ms) { SYS(); return wait_event(s, e, ms, 1); }

/* ---- known functions that this fake never supports ---------------------- */

#define UNSUPPORTED(fn) EXPORT ret_t fn(device_t *d) { DEV(d); return E_NOTSUP; }
UNSUPPORTED(nvmlDeviceGetBAR1MemoryInfo) UNSUPPORTED(nvmlDeviceGetClockInfo) UNSUPPORTED(nvmlDeviceGetMaxClockInfo)
UNSUPPORTED(nvmlDeviceGetFanSpeed) UNSUPPORTED(nvmlDeviceGetFanSpeed_v2) UNSUPPORTED(nvmlDeviceGetNumFans)
UNSUPPORTED(nvmlDeviceGetEncoderUtilization) UNSUPPORTED(nvmlDeviceGetDecoderUtilization)
UNSUPPORTED(nvmlDeviceGetJpgUtilization) UNSUPPORTED(nvmlDeviceGetOfaUtilization)
UNSUPPORTED(nvmlDeviceGetPcieThroughput) UNSUPPORTED(nvmlDeviceGetPcieReplayCounter)
UNSUPPORTED(nvmlDeviceGetCurrPcieLinkGeneration) UNSUPPORTED(nvmlDeviceGetMaxPcieLinkGeneration)
UNSUPPORTED(nvmlDeviceGetCurrPcieLinkWidth) UNSUPPORTED(nvmlDeviceGetMaxPcieLinkWidth)
UNSUPPORTED(nvmlDeviceGetDisplayMode) UNSUPPORTED(nvmlDeviceGetDisplayActive)
UNSUPPORTED(nvmlDeviceGetTotalEnergyConsumption) UNSUPPORTED(nvmlDeviceGetViolationStatus)
UNSUPPORTED(nvmlDeviceGetNvLinkState) UNSUPPORTED(nvmlDeviceGetP2PStatus) UNSUPPORTED(nvmlDeviceGetCpuAffinity)
UNSUPPORTED(nvmlDeviceGetInforomImageVersion) UNSUPPORTED(nvmlDeviceGetVbiosVersion)
UNSUPPORTED(nvmlDeviceGetMPSComputeRunningProcesses_v3) UNSUPPORTED(nvmlDeviceGetDefaultEccMode)
UNSUPPORTED(nvmlDeviceGetDetailedEccErrors) UNSUPPORTED(nvmlDeviceGetUnrepairableMemoryFlag_v1)
EXPORT ret_t nvmlDeviceValidateInforom(device_t *d) { DEV(d); return OK; }

/* Layouts as in nvml.h (see abi_check.c) */
#define SIZE(t, n) _Static_assert(sizeof(t) == (n), #t)
SIZE(pci_t, 68); SIZE(mem1_t, 24); SIZE(mem2_t, 40); SIZE(proc1_t, 16); SIZE(proc2_t, 24); SIZE(util_t, 8); SIZE(hist_t, 20);
SIZE(remap2_t, 24); SIZE(repair_t, 12); SIZE(sram_t, 104); SIZE(tempv_t, 12); SIZE(margin_t, 8); SIZE(attr_t, 40); SIZE(fval_t, 40); SIZE(event_t, 32);
