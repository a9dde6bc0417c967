# Waits until its input ends, then takes away what fixtures made: `network NAME`, `containerd DIRECTORY` or
# `mount DIRECTORY`.
# Goes on whatever fails: the rest is to go, too.
cat >/dev/null

take_network() {
    # Daemons outlive their agents on purpose; their machine they do not.
    for pid in $(ip netns pids "$1"); do kill -9 "$pid"; done
    # The namespace's interfaces go with it, and so does the end that is here.
    ip netns delete "$1"
}

# The ids of all containers whose bundles are there.
containers() {
    for bundle in "$1"/state/io.containerd.runtime.v2.task/*/*/; do
        [ -d "$bundle" ] && basename "$bundle"
    done
}

# Kills all processes of a container's control groups, and takes away the groups and its pod's. Those above are
# everybody's: others may be about to make theirs in them.
take_cgroups() {
    find /sys/fs/cgroup -type d -name "$1" 2>/dev/null | while read -r group; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            for pid in $(cat "$group/cgroup.procs"); do kill -9 "$pid"; done
            find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
            [ -d "$group" ] || break
            sleep 0.1
        done
        case $(basename "$(dirname "$group")") in pod*) rmdir "$(dirname "$group")" ;; esac
    done
}

take_containerd() {
    kill -9 "$(cat "$1/containerd.pid")"
    for process in /proc/[0-9]*; do
        tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q "^[^ ]*containerd-shim.* -address $1/containerd.sock" &&
            kill -9 "${process#/proc/}"
    done
    for id in $(containers "$1"); do
        take_cgroups "$id"
        rm -f "/var/lib/cni/results/$(basename "$1")-$id-"* "/var/lib/cni/results/cni-loopback-$id-lo"
    done
    for address in "$1"/state/io.containerd.runtime.v2.task/*/*/address; do
        [ -f "$address" ] && rm -f "$(sed 's,^unix://,,' "$address")"
    done
    for _ in 1 2 3; do
        grep -o " $1/[^ ]*" /proc/self/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
    done
    rm -rf "$1"
}

case $1 in
network) take_network "$2" ;;
containerd) take_containerd "$2" ;;
mount) umount -l "$2" ;;
esac
