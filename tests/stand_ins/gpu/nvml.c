/* Stand-in for libnvidia-ml.so.1: as many GPUs as STAND_IN_GPUS says; init answers STAND_IN_NVML_INIT (0: success).
 * Names and return types as in NVML's API reference. */
#include <stdlib.h>

static int number(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

int nvmlInit_v2(void) { return number("STAND_IN_NVML_INIT", 0); }

int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = (unsigned int)number("STAND_IN_GPUS", 2);
    return 0;
}
