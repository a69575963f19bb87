#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=8
#SBATCH --mem=65536M
#SBATCH --time=5
#SBATCH --signal=B:TERM@120
#SBATCH --no-requeue
#SBATCH --output=slurm-%j.log
#SBATCH --open-mode=append
#SBATCH --partition='batch m2'
#SBATCH --account=team
#SBATCH --nv-meta=ml-model.x
# j001-n2: 1 block, 2 runs, nodes: 2, about 16s. The time limit leaves room for slower runs.
# Variables and workloads of each run: specs/*.json.
# Rendered by gpubench 0.1. By hand: sbatch job.sh, in the directory where it stands; some blocks only:
# GPUBENCH_BLOCKS="1 2" sbatch job.sh
set -u
if [ ! -d specs ]; then
  echo "submit it from its own directory: cd JOB; sbatch job.sh" >&2
  exit 2
fi
trap 'echo "$?" >"end-$SLURM_JOB_ID"' EXIT
# Set here whatever the submitting shell has in OUTDIR and SCRATCHDIR: other programs use these names, too.
OUTDIR=${GPUBENCH_OUTDIR:-$(cd ../.. && pwd)}
export OUTDIR
SCRATCHDIR=${GPUBENCH_SCRATCHDIR:-${TMPDIR:-/tmp}}
export SCRATCHDIR
# The job's clock: its start, and the machine's seconds since then. Setting the time of day doesn't change it.
read -r GPUBENCH_UP _ </proc/uptime
GPUBENCH_CLOCK="$(</proc/sys/kernel/random/boot_id) $GPUBENCH_UP $(date +%s.%N)"
export GPUBENCH_CLOCK
now() {
  local up at=${GPUBENCH_CLOCK##* }
  read -r up _ </proc/uptime
  echo $((${at%.*} + ${up%.*} - ${GPUBENCH_UP%.*}))
}
GPUBENCH_JOB_TOKEN=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
export GPUBENCH_JOB_TOKEN
unset "${!SQUEUE_@}" "${!SCANCEL_@}" # options of the submitting shell: this script asks Slurm itself
# When the job ends. Two questions to Slurm's controller: its own time (sdiag), and the job's end in that time (squeue).
# If it doesn't answer: the latest end that the time limit allows.
GPUBENCH_END=$(($(now) + 300))
there=$(timeout 20 sdiag 2>/dev/null | sed -n 's/^sdiag output at .*(\([0-9]*\))$/\1/p')
end=$(timeout 20 squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)
if end=$(date -d "${end:-unknown}" +%s 2>/dev/null); then GPUBENCH_END=$((end + $(now) - ${there:-$(now)})); fi
export GPUBENCH_END
module load cuda/11.2
module load 'a b'

# Launcher srun: one supervisor per node. Every step names its whole shape, because srun inherits only a part of the job's.
# srun runs in the background, so that this script hears signals. A task that fails doesn't end the others at once:
# rank 0 still has a record to write.
stopping='' signalled='' more=()
shape=(--ntasks-per-node=1 --cpus-per-task=16 --gpus-per-node=8 --kill-on-bad-exit=0 --wait=90 --export=ALL)
launch() {
  local step code=130
  srun "--nodes=$SLURM_JOB_NUM_NODES" "--ntasks=$SLURM_JOB_NUM_NODES" "${shape[@]}" ${more[@]+"${more[@]}"} "$@" &
  step=$!
  while true; do # a signal interrupts wait; the supervisors still have to end their processes
    if [ -n "$stopping" ] && [ -z "$signalled" ]; then
      signal_steps || sleep 0.5 # srun has only begun: Slurm knows no step yet
    else
      wait "$step"
      code=$?
    fi
    kill -0 "$step" 2>/dev/null || return "$code"
  done
}
write_record() { # what only writes a record, on the first node
  srun --overlap --nodes=1 --ntasks=1 "${shape[@]}" "$@"
}
# Signals go to the steps by scancel. srun would kill its tasks at once, and a supervisor has to end its processes and
# write its record.
signal_steps() {
  local steps
  mapfile -t steps < <(timeout 20 squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format=%i | grep -E '\.[0-9]+$')
  # Its message about a step that has just ended is left out of the log, where it would look like an error.
  ((${#steps[@]})) && timeout 20 scancel --signal=TERM "${steps[@]}" 2>/dev/null && signalled=1
}
wait_for_all() { # COMMAND...: launches something that takes differently long on different nodes
  local more=(--wait=0)
  "$@"
}
trap 'stopping=1 signalled=' TERM INT HUP

# Runtime enroot. An image is unpacked once per node, into a container named by its digest, and kept for the job's blocks.
# Containers lie on the node, below a directory of this user's: others than this job may use or want the same one, so
# every command holds a lock. A file with a word in it says that the container is whole; an unpacking that was killed
# leaves it empty.
GPUBENCH_CAMPAIGN=$(cd ../.. && pwd)
in_fstab() { sed 's/\\/\\134/g; s/ /\\040/g; s/\t/\\011/g' <<<"$1"; } # PATH: as in fstab(5), where blanks part fields
GPUBENCH_OUTDIR_MOUNT=$(in_fstab "$OUTDIR")
GPUBENCH_SCRATCHDIR_MOUNT=$(in_fstab "$SCRATCHDIR")
GPUBENCH_CAMPAIGN_MOUNT=$(in_fstab "$GPUBENCH_CAMPAIGN")
GPUBENCH_ENROOT_PLACE=$(
  cat <<'SH'
home=$SCRATCHDIR/gpubench-enroot-$(id -u)
# What enroot.conf says of these may be a shared home directory, or one that only pyxis makes; every command makes all
# three, also where a node may not write there. No login shell, whose profiles set what no variant names.
export ENROOT_DATA_PATH=$home/containers ENROOT_RUNTIME_PATH=$home/run ENROOT_CACHE_PATH=$home/cache
export ENROOT_LOGIN_SHELL=no ENROOT_MOUNT_HOME=no
(umask 077 && mkdir -p -- "$home") || exit 40
# The name is predictable and everybody may write to /tmp, so somebody else may have made this directory. In a directory
# whose group is inherited its mode is 2700.
mode=$(stat -c %a -- "$home")
if [ -L "$home" ] || [ ! -O "$home" ] || [ "${mode%700}" = "$mode" ]; then
  echo "gpubench: $home on $(uname -n) is no directory that only $(id -un) may use; remove it, or name another paths.scratch" >&2
  exit 40
fi
mkdir -p -- "$home/containers" "$home/run" || exit 40
SH
)
GPUBENCH_ENROOT=$GPUBENCH_ENROOT_PLACE$(
  cat <<'SH'

options=() child='' signalled=''
while [ "$1" != -- ]; do
  name=${1#--env=}
  if ! [[ $1 =~ ^--env=[A-Za-z_][A-Za-z_0-9]*$ ]] || [ -n "${!name+set}" ]; then options+=("$1"); fi
  shift
done
image=$2 name=$3
shift 3
trap 'signalled=1; if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null; fi' TERM INT HUP
exec {lock}<>"$home/$name" || exit 1
while flock --shared "$lock" && [ ! -s "$home/$name" ]; do
  [ -z "$signalled" ] || exit 143
  flock --exclusive "$lock"
  if [ ! -s "$home/$name" ]; then
    if [ -d "$ENROOT_DATA_PATH/$name" ]; then enroot remove --force "$name" || exit 1; fi
    enroot create --name "$name" "$image" || exit 1
    echo whole >"$home/$name"
  fi
done
# enroot has no option for the working directory, and no image's entry point shall run: this is the command script.
if [ ! -s "$home/rc" ]; then
  # shellcheck disable=SC2016 # for the shell inside
  echo 'cd -- "$1" && shift && exec "$@"' >"$home/rc.$$" || exit 1
  mv "$home/rc.$$" "$home/rc" || exit 1
fi
[ -z "$signalled" ] || exit 143
enroot start --rc "$home/rc" "${options[@]}" "$name" "$PWD" "$@" <&0 &
child=$!
if [ -n "$signalled" ]; then kill -TERM "$child" 2>/dev/null; fi
while true; do # a signal interrupts wait; the program inside still has to end its processes
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || exit "$code"
done
SH
)
GPUBENCH_ENROOT_REMOVE=$GPUBENCH_ENROOT_PLACE$(
  cat <<'SH'

each_free() { # COMMAND...: with the name of each container that nobody uses; nobody can begin to use it meanwhile
  local name lock
  enroot list | while read -r name; do
    exec {lock}<>"$home/$name" || continue
    if flock --exclusive --nonblock "$lock" && [ -d "$ENROOT_DATA_PATH/$name" ]; then "$@" "$name" </dev/null; fi
    exec {lock}<&-
  done
}
take_away() { # NAME
  : >"$home/$1" # not whole any more
  timeout 300 enroot remove --force "$1"
}

each_free take_away
SH
)
# shellcheck disable=SC2329 # called as the script ends
leave() { # the job is over: remove what nobody uses, also what a killed job left
  stopping=''
  # After scancel or bkill no node takes a further command but this one: the others are cleaned by the next job there.
  wait_for_all launch bash -c "$GPUBENCH_ENROOT_REMOVE" 2>/dev/null || bash -c "$GPUBENCH_ENROOT_REMOVE"
}
trap 'echo "$?" >"end-$SLURM_JOB_ID"; leave' EXIT
in_image=(bash -c "$GPUBENCH_ENROOT" gpubench-enroot "--mount=$GPUBENCH_OUTDIR_MOUNT:$GPUBENCH_OUTDIR_MOUNT:none:x-create=auto,rbind" "--mount=$GPUBENCH_CAMPAIGN_MOUNT/jobs:$GPUBENCH_CAMPAIGN_MOUNT/jobs:none:x-create=auto,rbind,ro" "--mount=$GPUBENCH_CAMPAIGN_MOUNT/node.pyz:$GPUBENCH_CAMPAIGN_MOUNT/node.pyz:none:x-create=auto,rbind,ro" "--mount=$GPUBENCH_SCRATCHDIR_MOUNT:$GPUBENCH_SCRATCHDIR_MOUNT:none:x-create=auto,rbind" '--mount=/data\040sets:/data:none:x-create=auto,rbind,ro' --env=GPUBENCH_CLOCK --env=GPUBENCH_END --env=GPUBENCH_JOB_TOKEN --env=GPUBENCH_STOP_AT_EOF --env=OUTDIR --env=SCRATCHDIR --env=SLURM_NODEID --env=LANG --env=NVIDIA_VISIBLE_DEVICES=void --env=MELLANOX_VISIBLE_DEVICES=void)

# Each node compares an image's file with its sidecar before the first run: nothing that unpacks it notices changed bytes.
# It reads the whole file once a day. A note that only this user may write says which file was right, and when.
GPUBENCH_CHECK=$(
  cat <<'SH'
refuse() {
  echo "gpubench: $(uname -n): $1; import it again: gpubench images import" >&2
  exit 3
}
sidecar=$(cat "$1.json") || refuse "the sidecar of $1 can't be read"
[[ $sidecar =~ \"squashfs_sha256\":\ \"([0-9a-f]{64})\" ]] || refuse "the sidecar of $1 has no sha256"
wanted=${BASH_REMATCH[1]}
file=$(stat -L -c '%n %s bytes, inode %i, written %.9Y, changed %.9Z' -- "$1") || refuse "$1 can't be read"
notes=$SCRATCHDIR/gpubench-checked-$(id -u) note=''
(umask 077 && mkdir -p -- "$notes") 2>/dev/null
# The name is predictable, so somebody else may have made this directory: then no note counts.
mode=$(stat -c %a -- "$notes" 2>/dev/null)
if [ ! -L "$notes" ] && [ -O "$notes" ] && [ "${mode%700}" != "$mode" ]; then note=$notes/$wanted-$(uname -n); fi
if [ -f "$note" ] && [ "$(<"$note")" = "$file" ]; then
  age=$(($(date +%s) - $(stat -c %Y -- "$note")))
  if ((age >= 0 && age < 86400)); then exit 0; fi
fi
found=$(sha256sum <"$1") || refuse "$1 can't be read"
[ "${found%% *}" = "$wanted" ] || refuse "$1 isn't the file that was imported: its sha256 is ${found%% *}"
if [ -n "$note" ]; then { echo "$file" >"$note.$$" && mv -- "$note.$$" "$note"; } 2>/dev/null; fi
exit 0
SH
)
last_words() { # of a step: the first line that names a cause, else the last one that says more than that it failed
  local lines
  lines=$(sed -E 's/^slurmstepd(-[^ :]+)?: error: //; s/^pyxis:( +|$)//; s/^gpubench: //; s/^ +//' | grep -vE "$echoes|^ *$")
  { grep -m 1 -E "$causes" <<<"$lines" || tail -n 1 <<<"$lines"; } | sed 's/^\[ERROR\] //' | cut -c 1-300
}
echoes='spank|xited with (exit|return) code|couldn.t start container|container was not started|terminated unexpectedly'
echoes+='|printing enroot log|[*]{3} (JOB|STEP) .* CANCELLED AT'
causes='\[ERROR\]|FATAL ERROR|failed because|source path does not exist'
make_ready() { # FILE [COMMAND...]: the command does nothing, in the image
  local code
  if [ -n "$stopping" ]; then exit 130; fi
  {
    if wait_for_all launch bash -c "$GPUBENCH_CHECK" gpubench "$1"; then
      [ "$#" -eq 1 ] || wait_for_all launch "${in_image[@]}" "${@:2}"
    else
      code=$?
      if ((code == 3)); then unsound=1; fi
      (exit "$code")
    fi
  } 2>ready.log
  code=$?
  cat ready.log >&2
  if [ -n "$stopping" ]; then exit 130; fi
  if ((code)) && [ -z "$unready" ]; then # what fails behind it may only be its echo
    unready=$(last_words <ready.log)
    worst=$code unready="the image can't be started: ${unready:-exit code $code}"
  fi
  rm -f ready.log
}

# A block starts only if it can end in time; what isn't run gets a record that says why.
selected='' skip='' worst=0
unready='' # why the runs' images can't be started
unsound='' # an image's file isn't the imported one: nothing is started from it, not even what writes a record
# GPUBENCH_BUDGET: seconds in which all blocks have to end; the longest so far tells how long the next one takes.
due=${GPUBENCH_BUDGET:+$(($(now) + GPUBENCH_BUDGET))} block_began='' longest=0
begin_block() { # NUMBER SECONDS
  selected='' skip=$unready
  case " ${GPUBENCH_BLOCKS:-$1} " in *" $1 "*) selected=1 ;; esac
  local left=$((GPUBENCH_END - $(now)))
  if ((left < $2)); then skip="no time left: the block takes about $2 s, the job ends in $left s"; fi
  local at
  at=$(now)
  if [ -n "$block_began" ] && ((at - block_began > longest)); then longest=$((at - block_began)); fi
  block_began=''
  [ -n "$selected" ] && [ -z "$skip" ] || return 0
  block_began=$at
  if [ -n "$due" ] && ((due - at < (longest ? longest : $2 * 2 / 3))); then
    block_began='' skip="no time left in the budget: $((due > at ? due - at : 0)) s"
  fi
}
run() { # COMMAND...: the supervisor's, on every node
  if [ -n "$stopping" ]; then exit 130; fi
  [ -n "$selected" ] || return 0
  if [ -n "$skip" ]; then
    if [ -n "$unsound" ]; then return 0; fi
    write_record "$@" --rank 0 --skip "$skip" || worst=$?
    if [ -n "$stopping" ]; then exit 130; fi
    return 0
  fi
  launch "$@"
  local code=$?
  if [ -n "$stopping" ]; then exit 130; fi
  if ((code != 0)); then
    worst=$code
    skip="the run before it ended with exit code $code"
    if ((code == 40)); then skip="$skip: a node can't be used"; fi
  fi
}

make_ready /images/sha256-0000000000000000000000000000000000000000000000000000000000000000/image.sqsh
make_ready /images/sha256-0000000000000000000000000000000000000000000000000000000000000001/image.sqsh

begin_block 1 24
run "${in_image[@]}" -- /images/sha256-0000000000000000000000000000000000000000000000000000000000000000/image.sqsh gpubench-0000000000000000 /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-0-86e1106298f1.json
run "${in_image[@]}" -- /images/sha256-0000000000000000000000000000000000000000000000000000000000000001/image.sqsh gpubench-0000000000000000 /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-1-b8a6bf715f8b.json

# Where the first node can't start the image, no run has a record: the log says why, last of all.
if [ -n "$unready" ]; then echo "gpubench: $unready" >&2; fi
exit "$worst"
