"""Decides how nginx, Varnish and Traffic Server start in a working directory, and leave nothing outside it.

It exists because each has its own idea of where its files lie. It refuses the machine's own
configuration of them: only conf/ counts.
"""

import getpass
import os
import shutil

from .places import CONF


def nginx(directory):
    """Returns nginx's command; its workers keep the user, who owns the directory."""
    user = ["-g", f"user {getpass.getuser()};"] if os.geteuid() == 0 else []
    return ["nginx", "-p", directory, "-e", "error.log", *user, "-c", os.path.join(CONF, "nginx.conf")]


def varnish(directory):
    """Returns Varnish's command: one pool of threads, no other process of its own user, nothing logged."""
    # Its log in memory is always on; what it may log of a request can be masked, tag by tag.
    unlogged = ",".join(f"-{tag}" for tag in VARNISH_TAGS.split())
    return [
        *("varnishd", "-F", "-j", "none", "-T", "none", "-n", os.path.join(directory, "work")),
        *("-f", os.path.join(CONF, "varnish.vcl"), "-s", "malloc,512m"),
        *("-a", "pass=127.0.0.1:21200", "-a", "cache=127.0.0.1:21201", "-a", "capped=127.0.0.1:21202"),
        *("-p", "thread_pools=1", "-p", "timeout_idle=600", "-p", f"vsl_mask={unlogged}"),
    ]


VARNISH_TAGS = """
Begin End Link Timestamp ReqStart ReqMethod ReqURL ReqProtocol ReqHeader ReqUnset ReqAcct RespProtocol RespStatus
RespReason RespHeader RespUnset BereqMethod BereqURL BereqProtocol BereqHeader BereqUnset BereqAcct BerespProtocol
BerespStatus BerespReason BerespHeader BerespUnset BackendOpen BackendClose BackendStart SessOpen SessClose
VCL_call VCL_return VCL_use Hit HitPass HitMiss TTL Storage Fetch_Body FetchError Length Filters
"""


def traffic_server(directory):
    """Returns Traffic Server's command; its directories and its plan of them lie in the working directory."""
    places = {name: os.path.join(directory, name) for name in ("etc", "data", "var", "run", "logs", "cache")}
    for place in places.values():
        os.mkdir(place)
    for name in os.listdir(os.path.join(CONF, "ats")):
        shutil.copy(os.path.join(CONF, "ats", name), places["etc"])
    plan = {
        "prefix": directory,
        "exec_prefix": directory,
        "bindir": "/usr/bin",
        "sbindir": "/usr/sbin",
        "includedir": "/usr/include",
        "libdir": "/usr/lib/trafficserver",
        "libexecdir": "/usr/lib/trafficserver/modules",
        "sysconfdir": places["etc"],
        "datadir": places["data"],
        "localstatedir": places["var"],
        "runtimedir": places["run"],
        "logdir": places["logs"],
        "cachedir": places["cache"],
    }
    root = os.path.join(directory, "runroot.yaml")
    with open(root, "w") as file:
        file.writelines(f"{name}: {place}\n" for name, place in plan.items())
    return ["traffic_server", f"--run-root={root}"]
