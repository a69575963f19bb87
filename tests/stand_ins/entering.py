"""How the stand-ins of srun and enroot enter an unpacked image.

`bash -c ENTER NAME STAGE COUNT [SOURCE TARGET ro|""]... WORDS` with the options, the image and the command of ch-run.
"""

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
