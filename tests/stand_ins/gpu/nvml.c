/* Stand-in for libnvidia-ml.so.1: the GPUs of one node, as NVML's API reference has its functions, structures and codes.
 *
 * STAND_IN_NODE names the node (see `nodes` below; without it two GPUs that are near all CPUs), STAND_IN_GPUS another
 * number of GPUs (0 to 8), STAND_IN_CPUS the CPUs that are near GPUs, "0,1" without it: a test machine may have two CPUs,
 * and a process may use only some of them. STAND_IN_NVML_INIT is what init answers (0: success); likewise STAND_IN_NVML_COUNT,
 * STAND_IN_NVML_AFFINITY, STAND_IN_NVML_ENERGY, STAND_IN_NVML_THROTTLE and STAND_IN_NVML_NAME. STAND_IN_NVML_USED (GB)
 * and STAND_IN_NVML_BUSY (percent) are what somebody else has of every GPU, STAND_IN_NVML_MODE is its compute mode.
 * Each GPU uses a joule between two readings. GPU i has i GB less than GPU 0: a limit tells whose it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, FUNCTION_NOT_FOUND = 13 };
enum { GPUS = 8, INSTANCES = 2 };
static const unsigned long long GB = 1000000000ULL;

enum place { ALL_CPUS, TWO_SOCKETS, FOUR_DOMAINS, PARTLY_ABSENT, ABSENT };
enum mig { MIG_CALL_MISSING, MIG_NOT_SUPPORTED, MIG_OFF, MIG_ON };

static const struct node {
    const char *name, *model;
    int gpus;
    enum place place;
    enum mig mig;
    unsigned long long memory, bar1; /* of GPU 0, in GB; bar1 0: as large as the memory */
} nodes[] = {
    {"pair", "Stand-in GPU", 2, ALL_CPUS, MIG_NOT_SUPPORTED, 80, 1},
    {"two-sockets", "NVIDIA A100-SXM4-40GB", 8, TWO_SOCKETS, MIG_OFF, 40, 64},
    {"four-domains", "NVIDIA A100-SXM4-40GB", 4, FOUR_DOMAINS, MIG_OFF, 40, 64},
    {"dgx1", "Tesla V100-SXM2-16GB", 8, TWO_SOCKETS, MIG_NOT_SUPPORTED, 16, 0},
    {"mig", "NVIDIA A100-SXM4-40GB", 2, TWO_SOCKETS, MIG_ON, 40, 64},
    {"old-driver", "Tesla V100-SXM2-16GB", 2, TWO_SOCKETS, MIG_CALL_MISSING, 16, 0},
    {"absent", "NVIDIA A100-SXM4-40GB", 8, ABSENT, MIG_OFF, 40, 64},
    {"partly-absent", "NVIDIA A100-SXM4-40GB", 8, PARTLY_ABSENT, MIG_OFF, 40, 64},
};

/* Handles: GPU i is i + 1; its instance j of MIG is 1000 + 10 i + j. */
typedef unsigned long handle;

static int number(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

static const struct node *node(void)
{
    const char *name = getenv("STAND_IN_NODE");
    for (unsigned long i = 0; name && i < sizeof nodes / sizeof *nodes; i++)
        if (!strcmp(nodes[i].name, name))
            return &nodes[i];
    if (name) {
        fprintf(stderr, "stand-in for NVML: no node %s\n", name);
        abort();
    }
    return nodes;
}

static unsigned int count(void) { return (unsigned int)number("STAND_IN_GPUS", node()->gpus); }

static int is_mig(handle device) { return device >= 1000; }

static unsigned int index_of(handle device)
{
    return (unsigned int)(is_mig(device) ? (device - 1000) / 10 : device - 1);
}

static int known(handle device) { return device != 0 && index_of(device) < count(); }

static void uuid_of(handle device, char *text, unsigned int length)
{
    if (is_mig(device))
        snprintf(text, length, "MIG-00000000-0000-0000-000%lu-00000000000%u", (device - 1000) % 10, index_of(device));
    else
        snprintf(text, length, "GPU-00000000-0000-0000-0000-00000000000%u", index_of(device));
}

int nvmlInit_v2(void) { return number("STAND_IN_NVML_INIT", 0); }

int nvmlInitWithFlags(unsigned int flags) { return flags ? INVALID_ARGUMENT : nvmlInit_v2(); }

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) { return code ? "an error of the stand-in" : "success"; }

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    snprintf(version, length, "550.54.15");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *found)
{
    *found = count();
    return number("STAND_IN_NVML_COUNT", 0);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, handle *device)
{
    *device = index + 1UL;
    return index < count() ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle *device)
{
    char text[80];
    for (unsigned int i = 0; i < count(); i++) {
        for (int j = -1; j < (node()->mig == MIG_ON ? INSTANCES : 0); j++) {
            *device = j < 0 ? i + 1UL : 1000UL + 10UL * i + (unsigned long)j;
            uuid_of(*device, text, sizeof text);
            if (!strcmp(text, uuid))
                return SUCCESS;
        }
    }
    return NOT_FOUND;
}

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char text[32];
};

int nvmlDeviceGetPciInfo_v3(handle device, struct pci *found)
{
    if (!known(device) || is_mig(device))
        return INVALID_ARGUMENT;
    memset(found, 0, sizeof *found);
    found->bus = index_of(device) + 1;
    snprintf(found->legacy, sizeof found->legacy, "0000:%02X:00.0", found->bus);
    snprintf(found->text, sizeof found->text, "00000000:%02X:00.0", found->bus);
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *text, handle *device)
{
    struct pci found;
    for (*device = 1; known(*device); ++*device)
        if (!nvmlDeviceGetPciInfo_v3(*device, &found) && (!strcmp(found.text, text) || !strcmp(found.legacy, text)))
            return SUCCESS;
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(handle device, unsigned int *index)
{
    *index = is_mig(device) ? (unsigned int)(device - 1000) % 10 : index_of(device);
    return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetUUID(handle device, char *uuid, unsigned int length)
{
    if (!known(device))
        return INVALID_ARGUMENT;
    uuid_of(device, uuid, length);
    return SUCCESS;
}

int nvmlDeviceGetName(handle device, char *name, unsigned int length)
{
    const char *kind = node() != nodes ? "" : device == 3 ? " B" : " A";
    snprintf(name, length, "%s%s", node()->model, kind);
    return number("STAND_IN_NVML_NAME", 0);
}

int nvmlDeviceGetMemoryInfo(handle device, unsigned long long memory[3])
{
    if (!known(device))
        return INVALID_ARGUMENT;
    memory[0] = memory[1] = (node()->memory - index_of(device)) * GB / (is_mig(device) ? INSTANCES : 1);
    memory[2] = (unsigned long long)number("STAND_IN_NVML_USED", 0) * GB; /* somebody's */
    memory[1] -= memory[2];
    return SUCCESS;
}

int nvmlDeviceGetComputeMode(handle device, unsigned int *mode)
{
    *mode = (unsigned int)number("STAND_IN_NVML_MODE", 0);
    return is_mig(device) ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(handle device, unsigned int *milliwatts)
{
    *milliwatts = 400000;
    return known(device) && !is_mig(device) ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetBAR1MemoryInfo(handle device, unsigned long long memory[3])
{
    if (!known(device) || is_mig(device))
        return INVALID_ARGUMENT;
    memory[0] = memory[1] = node()->bar1 ? node()->bar1 * GB : (node()->memory - index_of(device)) * GB;
    memory[2] = 0;
    return SUCCESS;
}

/* An old driver's library has no such function; whoever asks by pynvml hears this code then, too. */
int nvmlDeviceGetMigMode(handle device, unsigned int *current, unsigned int *pending)
{
    *current = *pending = node()->mig == MIG_ON;
    switch (node()->mig) {
    case MIG_CALL_MISSING: return FUNCTION_NOT_FOUND;
    case MIG_NOT_SUPPORTED: return NOT_SUPPORTED;
    default: return known(device) && !is_mig(device) ? SUCCESS : INVALID_ARGUMENT;
    }
}

int nvmlDeviceGetMaxMigDeviceCount(handle device, unsigned int *found)
{
    *found = node()->mig < MIG_OFF ? 0 : 7;
    return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned int index, handle *instance)
{
    if (node()->mig != MIG_ON)
        return NOT_SUPPORTED;
    *instance = 1000UL + 10UL * index_of(device) + index;
    return index < INSTANCES ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(handle device, unsigned int *answer)
{
    *answer = is_mig(device);
    return node()->mig == MIG_CALL_MISSING ? FUNCTION_NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle instance, handle *device)
{
    *device = index_of(instance) + 1UL;
    return is_mig(instance) ? SUCCESS : INVALID_ARGUMENT;
}

static void set(unsigned int cpu, unsigned int size, unsigned long *mask)
{
    if (cpu / 64 < size)
        mask[cpu / 64] |= 1UL << cpu % 64;
}

/* `size` counts words of 64 CPUs; CPUs beyond them aren't said. */
int nvmlDeviceGetCpuAffinity(handle device, unsigned int size, unsigned long *mask)
{
    unsigned int first = 0, second = 1, socket, last = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
    const char *cpus = getenv("STAND_IN_CPUS");
    if (!known(device) || is_mig(device) || size == 0)
        return INVALID_ARGUMENT;
    if (cpus)
        sscanf(cpus, "%u,%u", &first, &second);
    socket = count() > 1 && index_of(device) >= count() / 2;
    memset(mask, 0, size * sizeof *mask);
    switch (node()->place) {
    case ALL_CPUS:
        for (unsigned int cpu = 0; cpu < last; cpu++)
            set(cpu, size, mask);
        break;
    case FOUR_DOMAINS: /* the first, the second, both, the second: no two neighbours have the same CPUs */
        if (index_of(device) % 2 == 0)
            set(first, size, mask);
        if (index_of(device) != 0)
            set(second, size, mask);
        break;
    case ABSENT: /* the second half is near CPUs that this machine doesn't have */
        set(socket ? last : first, size, mask);
        break;
    case PARTLY_ABSENT:
        set(last, size, mask); /* fall through */
    case TWO_SOCKETS:
        set(socket ? second : first, size, mask);
    }
    return number("STAND_IN_NVML_AFFINITY", 0);
}

int nvmlDeviceGetCpuAffinityWithinScope(handle device, unsigned int size, unsigned long *mask, unsigned int scope)
{
    return scope > 1 ? INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(device, size, mask);
}

/* No process has a context on a GPU. */
static int nobody(handle device, unsigned int *processes)
{
    *processes = 0;
    return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetComputeRunningProcesses(handle device, unsigned int *n, void *found) { return nobody(device, n); }

int nvmlDeviceGetComputeRunningProcesses_v2(handle device, unsigned int *n, void *found) { return nobody(device, n); }

int nvmlDeviceGetComputeRunningProcesses_v3(handle device, unsigned int *n, void *found) { return nobody(device, n); }

int nvmlDeviceGetUtilizationRates(handle device, unsigned int percent[2])
{
    percent[0] = (unsigned int)number("STAND_IN_NVML_BUSY", 0);
    percent[1] = 0;
    return is_mig(device) ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(handle device, unsigned long long *millijoules)
{
    static unsigned long long readings[GPUS];
    unsigned int index = index_of(device) % GPUS;
    *millijoules = 12500 + 100000 * index + 1000 * readings[index]++;
    return number("STAND_IN_NVML_ENERGY", 0);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(handle device, unsigned long long *reasons)
{
    *reasons = device == 1 ? 4 : 64; /* SwPowerCap, HwThermalSlowdown */
    return number("STAND_IN_NVML_THROTTLE", 0);
}
