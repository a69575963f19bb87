/* Stand-in for libcuda.so.1, the driver's library, on a machine without a GPU: UCX's module for GPU memory is linked to it
 * and finds it, so that UCX loads the module; every function answers as the real one does where there is no device. */
enum { CUDA_ERROR_NO_DEVICE = 100 };

int cuGetErrorString(int code, const char **text)
{
    *text = code ? "no CUDA-capable device is detected" : "no error";
    return 0;
}

#define NONE(name) int name(void) { return CUDA_ERROR_NO_DEVICE; }

/* Whatever the modules of UCX 1.16 to 1.22 call (nm -D --undefined-only libuct_cuda.so.0 libucm_cuda.so.0). */
NONE(cuCtxGetCurrent) NONE(cuCtxGetDevice) NONE(cuCtxGetId) NONE(cuCtxPopCurrent_v2) NONE(cuCtxPushCurrent_v2)
NONE(cuDeviceGet) NONE(cuDeviceGetAttribute) NONE(cuDeviceGetCount) NONE(cuDeviceGetName) NONE(cuDeviceGetUuid)
NONE(cuDevicePrimaryCtxGetState) NONE(cuDevicePrimaryCtxRelease_v2) NONE(cuDevicePrimaryCtxRetain)
NONE(cuDeviceTotalMem_v2) NONE(cuEventCreate) NONE(cuEventDestroy_v2) NONE(cuEventQuery) NONE(cuEventRecord)
NONE(cuGetProcAddress_v2) NONE(cuInit) NONE(cuIpcCloseMemHandle) NONE(cuIpcGetMemHandle) NONE(cuIpcOpenMemHandle_v2)
NONE(cuMemAddressFree) NONE(cuMemAddressReserve) NONE(cuMemAllocManaged) NONE(cuMemAlloc_v2) NONE(cuMemCreate)
NONE(cuMemExportToShareableHandle) NONE(cuMemFree_v2) NONE(cuMemGetAddressRange_v2)
NONE(cuMemGetAllocationGranularity) NONE(cuMemGetAllocationPropertiesFromHandle) NONE(cuMemHostRegister_v2)
NONE(cuMemHostUnregister) NONE(cuMemImportFromShareableHandle) NONE(cuMemMap) NONE(cuMemPoolDestroy)
NONE(cuMemPoolExportPointer) NONE(cuMemPoolExportToShareableHandle) NONE(cuMemPoolImportFromShareableHandle)
NONE(cuMemPoolImportPointer) NONE(cuMemPoolSetAccess) NONE(cuMemRangeGetAttribute) NONE(cuMemRelease)
NONE(cuMemRetainAllocationHandle) NONE(cuMemSetAccess) NONE(cuMemUnmap) NONE(cuMemcpyAsync)
NONE(cuMemcpyDtoDAsync_v2) NONE(cuMemcpyHtoD_v2) NONE(cuPointerGetAttribute) NONE(cuPointerGetAttributes)
NONE(cuPointerSetAttribute) NONE(cuStreamAddCallback) NONE(cuStreamCreate) NONE(cuStreamDestroy_v2)
NONE(cuStreamSynchronize)
