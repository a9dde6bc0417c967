# Starts a machine, keeps it until stdin is closed, and removes it.
# $1: a work directory. $2: the script that starts the machine; it gets the remaining arguments.
dir=$1
script=$2
shift 2

# All its cgroups are in one that is removed at the end.
mount -t cgroup2 cgroup2 "$dir/groups" || exit 1
group=$dir/groups/kennel-machine-$$
mkdir "$group" || exit 1
(
    sh -c 'echo $PPID' >"$group/cgroup.procs"
    exec unshare --cgroup --mount --pid --net --uts --ipc --fork --kill-child --propagation private \
        sh -c "$script" machine "$@"
) &
echo $! >"$dir/pid"
cat >/dev/null
kill -KILL $!
wait
# Killed processes take a moment to exit.
for _ in $(seq 100); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -e "$group" ] || break
    sleep 0.05
done
