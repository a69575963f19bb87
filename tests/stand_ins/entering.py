"""What the stand-ins of srun and enroot share: where containers are, what their hooks refuse, how an image is entered.

`bash -c ENTER NAME STAGE COUNT [SOURCE TARGET ro|""]... WORDS` with the options, the image and the command of ch-run.
"""

import os
import shutil
from pathlib import Path


def containers():
    """ENROOT_DATA_PATH as enroot.conf of the site sets it: every host's own, and the same for pyxis."""
    return Path(f"/tmp/stand-in-pyxis-{os.getuid()}")


def missing_device(own):
    """Lines of the hooks 98-nvidia.sh and 99-mellanox.sh where the container asks for what the node hasn't."""
    if own.get("NVIDIA_VISIBLE_DEVICES") not in (None, "", "void") and not shutil.which("nvidia-container-cli"):
        return (
            "[ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container",
            "[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1",
        )
    if own.get("MELLANOX_VISIBLE_DEVICES") not in (None, "", "void") and not Path("/dev/infiniband").exists():
        return ("enroot-mount: failed to mount: /dev/infiniband/rdma_cm: No such file or directory",)
    return ()


# ch-run has no read-only binds, but a bind of a mount that is read-only is so too: the mounts are made beside the
# image, in a mount namespace of the task.
ENTER = r"""
set -eu
stage=$1 count=$2; shift 2
mount -t tmpfs tmpfs "$stage"
bind=()
for ((i = 0; i < count; i++)); do
  if [ -d "$1" ]; then mkdir "$stage/$i"; else : >"$stage/$i"; fi
  mount --rbind "$1" "$stage/$i"
  if [ -n "$3" ]; then mount -o remount,bind,ro "$stage/$i"; fi
  bind+=("--bind=$stage/$i:$2")
  shift 3
done
exec ch-run "${bind[@]}" "$@"
"""
