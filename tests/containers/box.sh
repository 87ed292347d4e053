#!/bin/bash
# Runs a command in process, network, mount and cgroup namespaces of its own, with the settings that
# Podman needs there; ends everything inside with the command, and leaves nothing behind. Needs root
# and cgroups of version 1 or both versions.
#
#   box.sh DIR COMMAND ...     DIR holds images and containers
set -e
dir=$1
shift
group=psrt-$(basename "$dir")
hierarchies="unified systemd pids cpu cpuacct cpuset devices freezer blkio"

cat > "$dir/storage.conf" << CONF
[storage]
driver = "${STORAGE_DRIVER:-vfs}"
graphroot = "$dir/storage"
runroot = "$dir/run"
CONF
cat > "$dir/containers.conf" << CONF
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$dir/tmp"
[network]
network_config_dir = "$dir/networks"
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
CONF
echo '{"default": [{"type": "insecureAcceptAnything"}]}' > "$dir/policy.json"

for name in $hierarchies; do mkdir -p "/sys/fs/cgroup/$name/$group"; done
for file in cpuset.cpus cpuset.mems; do
  cat "/sys/fs/cgroup/cpuset/$file" > "/sys/fs/cgroup/cpuset/$group/$file"
done
(
  for name in $hierarchies; do echo "$BASHPID" > "/sys/fs/cgroup/$name/$group/cgroup.procs"; done
  export CONTAINERS_STORAGE_CONF=$dir/storage.conf CONTAINERS_CONF=$dir/containers.conf
  ulimit -n 20000
  ulimit -u 20000
  exec unshare --cgroup --net --mount --pid --fork --kill-child --mount-proc bash -c '
    ip link set lo up
    ip link add psrt0 type bridge
    ip addr add 10.80.0.1/24 dev psrt0
    ip link set psrt0 up
    mount -t tmpfs -o mode=755 groups /sys/fs/cgroup
    for name in '"$hierarchies"' memory; do
      mkdir "/sys/fs/cgroup/$name"
      case $name in
        unified) mount -t cgroup2 group "/sys/fs/cgroup/$name" ;;
        systemd) mount -t cgroup -o none,name=systemd group "/sys/fs/cgroup/$name" ;;
        *) mount -t cgroup -o "$name" group "/sys/fs/cgroup/$name" ;;
      esac
    done
    for name in /run/containers /run/netns; do
      mkdir -p "$name"
      mount -t tmpfs state "$name"
    done
    mkdir -p /etc/containers
    mount -t tmpfs containers /etc/containers
    cp "'"$dir"'/policy.json" /etc/containers/policy.json
    "$@"' box "$@"
) || code=$?
for root in $(find /sys/fs/cgroup -mindepth 2 -maxdepth 2 -type d -name "$group"); do
  for _ in $(seq 25); do
    find "$root" -depth -type d -exec rmdir {} \; 2> /dev/null
    [ -d "$root" ] || break
    sleep 0.2
  done
done
exit "${code:-0}"
