# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""NVMe over Fabrics: the responder's kernel offers a disk that is none, the requester's has
it, by TCP or by the RDMA device under test; fio reads and writes it."""

import glob
import json
import os
import time

from programs import Failure, run

CONFIG = "/sys/kernel/config/nvmet"
NAME, PORT = "bench", "4420"
HOST = "nqn.2014-08.org.nvmexpress:uuid:7f7a8e0e-0000-4000-8000-000000000001"
WAIT = 10	# seconds for a disk
MIB = 1 << 20
PARTS = {"p50": "50.000000", "p99": "99.000000", "p99.9": "99.900000"}


def _write(path, text):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as why:
        raise Failure("%s: %s" % (path, why)) from None


# --- the responder ---

def offer(kind, address):
    """The disk, at a port of that kind: rdma or tcp."""
    run("modprobe", "null_blk", "nr_devices=1", "gb=4")
    run("modprobe", "nvmet-" + kind)
    subsystem, port = CONFIG + "/subsystems/" + NAME, CONFIG + "/ports/1"
    os.makedirs(subsystem + "/namespaces/1", exist_ok=True)
    _write(subsystem + "/attr_allow_any_host", "1")
    _write(subsystem + "/namespaces/1/device_path", "/dev/nullb0")
    _write(subsystem + "/namespaces/1/enable", "1")
    os.makedirs(port)
    for name, value in (("trtype", kind), ("adrfam", "ipv4"), ("traddr", address),
                        ("trsvcid", PORT)):
        _write(port + "/addr_" + name, value)
    try:
        os.symlink(subsystem, port + "/subsystems/" + NAME)
    except OSError as why:
        raise Failure("nvmet offers nothing: %s" % why) from None


def withdraw():
    """What offer() made goes, whatever there is of it."""
    for path in glob.glob(CONFIG + "/ports/1/subsystems/*"):
        os.unlink(path)
    for path in (CONFIG + "/ports/1", CONFIG + "/subsystems/%s/namespaces/1" % NAME,
                 CONFIG + "/subsystems/" + NAME):
        if os.path.isdir(path):
            os.rmdir(path)


# --- the requester ---

def _controller(kind, address):
    """Connects, and gives the controller's directory."""
    run("modprobe", "nvme-" + kind)
    words = {"transport": kind, "traddr": address, "trsvcid": PORT, "nqn": NAME,
             "hostnqn": HOST, "hostid": HOST.rpartition(":")[2], "nr_io_queues": "1"}
    try:
        with open("/dev/nvme-fabrics", "r+b", buffering=0) as file:
            file.write(",".join("%s=%s" % pair for pair in words.items()).encode())
            told = file.read(256).decode()
    except OSError as why:
        raise Failure("nvme does not connect: %s" % why) from None
    return "/sys/class/nvme/nvme" + told.partition("instance=")[2].partition(",")[0]


def _disk(controller):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        for path in glob.glob(controller + "/nvme*n1"):
            disk = "/dev/" + os.path.basename(path)
            if os.path.exists(disk):
                return disk
        time.sleep(0.05)
    raise Failure("nvme shows no disk")


def _fio(disk, words):
    text = run("fio", "--name=bench", "--filename=" + disk, "--ioengine=libaio", "--direct=1",
               "--time_based", "--runtime=1", "--output-format=json", *words)
    job = json.loads(text)["jobs"][0]
    told = job["write"] if job["write"]["io_bytes"] else job["read"]
    if job["error"] or not told["io_bytes"]:
        raise Failure("fio moved nothing, error %d" % job["error"])
    return told


def _measure(world, job):
    kind, address = "tcp" if job.peer == "tcp" else "rdma", world.address(job.peer)
    controller = None
    world.far.nvme_offer(kind, address)
    try:
        controller = _controller(kind, address)
        return _fio(_disk(controller), job.case.words)
    finally:
        if controller:
            _write(controller + "/delete_controller", "1")
        world.far.nvme_withdraw()


def bandwidth(world, job):
    """MiB/s."""
    return {"-": _measure(world, job)["bw_bytes"] / MIB}


def latency(world, job):
    """Microseconds by percentile, of requests one at a time."""
    times = _measure(world, job)["clat_ns"]["percentile"]
    parts = {part: times[name] / 1000 for part, name in PARTS.items()}
    return {"-": parts["p50"], **parts}
