#!/usr/bin/env bash
# A Slurm of one node on this machine, for tests: cluster.sh start|restart|stop FOLDER, as root, without systemd. Its files are in
# FOLDER, its configuration in FOLDER/slurm.conf, which SLURM_CONF has to name for its commands.
set -euo pipefail

folder=${2:?cluster.sh start|restart|stop FOLDER}
host=$(hostname)
export SLURM_CONF=$folder/slurm.conf

# Who asks Slurm for something says who they are by munge: a key and a daemon of its own.
munge() {
    install -d -o munge -g munge -m 0700 /etc/munge /var/log/munge
    install -d -o munge -g munge -m 0711 /var/lib/munge
    install -d -o munge -g munge -m 0755 /run/munge
    if [[ ! -s /etc/munge/munge.key ]]; then
        head -c 1024 /dev/urandom >/etc/munge/munge.key
        chown munge:munge /etc/munge/munge.key
        chmod 0400 /etc/munge/munge.key
    fi
    pgrep -x munged >/dev/null || setpriv --reuid=munge --regid=munge --clear-groups munged
}

configure() {
    mkdir -p "$folder"/{state,spool,log}
    # A job is requeued once its credential has expired: two minutes, if nobody says otherwise.
    cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    # slurmd looks for a cgroup plugin, though nothing here asks for one.
    if [[ $(stat -f -c %T /sys/fs/cgroup) = cgroup2fs ]]; then
        printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$folder/cgroup.conf"
    else
        printf 'CgroupPlugin=cgroup/v1\n' >"$folder/cgroup.conf"
    fi
}

until_answering() {
    for _ in $(seq 60); do
        if scontrol ping 2>/dev/null | grep -q 'is UP' && sinfo --noheader --format %T | grep -qE 'idle|mixed|alloc'; then
            return
        fi
        sleep 0.5
    done
    sinfo >&2 || true
    tail -n 20 "$folder"/log/*.log >&2
    exit 1
}

end() {
    local pid
    [[ -s $folder/$1.pid ]] || return 0
    pid=$(cat "$folder/$1.pid")
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 60); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.5
    done
    kill -KILL "$pid" 2>/dev/null || true
}

case $1 in
start)
    munge
    configure
    slurmctld -c
    slurmd
    until_answering
    ;;
restart)
    end slurmctld
    slurmctld
    until_answering
    ;;
stop)
    scancel --user root 2>/dev/null || true
    end slurmd
    end slurmctld
    ;;
*)
    echo "cluster.sh start|restart|stop FOLDER" >&2
    exit 2
    ;;
esac
