"""Configurations as the Helm chart `nats` of nats-io/k8s renders them for a StatefulSet of three pods. The names of hosts
and files, and the environment, are those of a release `nats` in the namespace `default`.

Since version 1.0 the chart writes JSON with variables, and with `include` in place of keys. Before, it wrote the usual
syntax."""

PODS = ["nats-0", "nats-1", "nats-2"]
PORT, CLUSTER_PORT, HTTP_PORT = 4222, 6222, 8222
PID_FILE = "/var/run/nats/nats.pid"
CERTIFICATES = "/etc/nats-certs/cluster"


def environment(pod: str) -> dict[str, str]:
    """Returns the variables of a pod's container, of both charts."""
    return {"POD_NAME": pod, "SERVER_NAME": pod, "POD_NAMESPACE": "default", "CLUSTER_ADVERTISE": hosts(pod)[1]}


def hosts(pod: str) -> list[str]:
    """Returns the names of a pod: those that routes have, since version 1.0 and before."""
    return [f"{pod}.nats-headless", f"{pod}.nats.default.svc.cluster.local"]


def _cluster(scheme: str = "nats", tls: str = "") -> str:
    return f"""  "cluster": {{
    "name": "nats",
    "no_advertise": true,
    "port": 6222,
    "routes": [
      "{scheme}://nats-0.nats-headless:6222",
      "{scheme}://nats-1.nats-headless:6222",
      "{scheme}://nats-2.nats-headless:6222"
    ]{tls}
  }},
"""


def _chart(parts: str, before: str = "", after: str = "") -> str:
    """Returns the text of the chart since version 1.0."""
    return f"""{{
{before}{parts}  "lame_duck_duration": "30s",
  "lame_duck_grace_period": "10s",
  "pid_file": "/var/run/nats/nats.pid",
  "port": 4222,
  "server_name": $SERVER_NAME{after}
}}
"""


_HTTP = '  "http_port": 8222,\n'
_JETSTREAM = """  "jetstream": {
    "max_file_store": 10Gi,
    "max_memory_store": 0,
    "store_dir": "/data"
  },
"""
_JETSTREAM_INCLUDING = _JETSTREAM.replace('"/data"\n', '"/data",\n    include js.conf;\n')
_TLS = f""",
    "tls": {{
      "ca_file": "{CERTIFICATES}/ca.crt",
      "cert_file": "{CERTIFICATES}/tls.crt",
      "key_file": "{CERTIFICATES}/tls.key",
      "verify": true
    }}"""


def _old_chart(jetstream: str, name: str) -> str:
    """Returns the text of the chart before version 1.0."""
    return f"""# NATS Clients Port
port: 4222

# PID file shared with configuration reloader.
pid_file: "/var/run/nats/nats.pid"
###########
#         #
# Imports #
#         #
###########
include ./auth/auth.conf

###############
#             #
# Monitoring  #
#             #
###############
http: 8222
server_name:$POD_NAME
{jetstream}###################################
#                                 #
# NATS Full Mesh Clustering Setup #
#                                 #
###################################
cluster {{
  port: 6222
{name}
  routes = [
    nats://nats-0.nats.default.svc.cluster.local:6222,nats://nats-1.nats.default.svc.cluster.local:6222,nats://nats-2.nats.default.svc.cluster.local:6222,

  ]
  cluster_advertise: $CLUSTER_ADVERTISE

  connect_retries: 120
}}
lame_duck_duration: 30s
"""


_OLD_JETSTREAM = """###################################
#                                 #
# NATS JetStream                  #
#                                 #
###################################
jetstream {
  max_mem: 1Gi
  store_dir: /data

  max_file:1Gi
}
"""

# Values of the chart that configure JetStream.
WITHOUT_JETSTREAM = {
    "cluster": _chart(_cluster() + _HTTP),
    "cluster over TLS": _chart(_cluster("tls", _TLS) + _HTTP),
    "old chart, cluster": _old_chart("", ""),
}
WITH_JETSTREAM = {
    "cluster and JetStream": _chart(_cluster() + _HTTP + _JETSTREAM),
    "cluster and JetStream with included files": _chart(
        _cluster() + _HTTP + _JETSTREAM_INCLUDING, "  include my-config.conf;\n", ",\n  include my-config-last.conf;"
    ),
    "old chart, cluster and JetStream": _old_chart(_OLD_JETSTREAM, "  name: nats\n"),
}
# Files beside the configuration.
FILES = {
    "js.conf": "max_file_store:  1GB\nmax_outstanding_catchup: 64MB\n",
    "my-config.conf": 'ping_interval: "5m"\n',
    "my-config-last.conf": "ping_max: 3\n",
    "auth/auth.conf": "max_payload: 2MB\n",
}
# `-t` looks for the certificates.
CASES = [text for text in (WITHOUT_JETSTREAM | WITH_JETSTREAM).values() if CERTIFICATES not in text]
