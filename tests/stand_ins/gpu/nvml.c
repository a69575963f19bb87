/* Stand-in for libnvidia-ml.so.1: as many GPUs as STAND_IN_GPUS says; init answers STAND_IN_NVML_INIT (0: success),
 * likewise STAND_IN_NVML_ENERGY, STAND_IN_NVML_THROTTLE and STAND_IN_NVML_NAME. Each GPU uses a joule between two readings.
 * Names and return types as in NVML's API reference. */
#include <stdio.h>
#include <stdlib.h>

static int number(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

int nvmlInit_v2(void) { return number("STAND_IN_NVML_INIT", 0); }

int nvmlInitWithFlags(unsigned int flags) { return flags ? 2 : nvmlInit_v2(); }

int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = (unsigned int)number("STAND_IN_GPUS", 2);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
    *device = (void *)(unsigned long)(index + 1);
    return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned int length)
{
    snprintf(name, length, "Stand-in GPU %s", device == (void *)3 ? "B" : "A");
    return number("STAND_IN_NVML_NAME", 0);
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    snprintf(version, length, "550.54.15");
    return 0;
}

/* ucxx asks for these three when it is imported: no MIG (NVML_ERROR_NOT_SUPPORTED), 80 GB of memory, 256 MiB of BAR1. */
int nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending) { return 3; }

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3])
{
    memory[0] = memory[1] = 80000000000ULL;
    memory[2] = 0;
    return 0;
}

int nvmlDeviceGetBAR1MemoryInfo(void *device, unsigned long long memory[3])
{
    memory[0] = memory[1] = 256 << 20;
    memory[2] = 0;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    static unsigned long long readings[64];
    unsigned long index = (unsigned long)device - 1;
    *millijoules = 12500 + 100000 * index + 1000 * readings[index]++;
    return number("STAND_IN_NVML_ENERGY", 0);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    *reasons = device == (void *)1 ? 4 : 64; /* SwPowerCap, HwThermalSlowdown */
    return number("STAND_IN_NVML_THROTTLE", 0);
}
