//! Help of the nats-server front end: supported and unsupported flags.

/// Returns the help, with the program's name.
pub(crate) fn usage(program: &str) -> String {
    format!("\nUsage: {program} [options]\n{OPTIONS}")
}

/// Returns the help about TLS.
pub(crate) fn tls_usage(program: &str) -> String {
    format!("\nTLS of {program}\n{TLS}")
}

const TLS: &str = "
Clients use TLS 1.2 or 1.3 after the server's INFO. The server needs a certificate and its key:

    --tlscert server.pem --tlskey server.key

To require client certificates from given authorities:

    --tlsverify --tlscacert clients.pem

Monitoring over HTTPS with the same certificate:

    --https_port 8443

In a configuration file, which has more options (several certificates by name, versions, cipher suites,
pinned keys, a handshake before INFO, users by certificate):

    tls {
      cert_file: \"server.pem\"
      key_file:  \"server.key\"
      ca_file:   \"clients.pem\"
      verify:    true
    }

A reload reads the files again; open connections are not affected.
";

const OPTIONS: &str = "
Server options:
    -a, --addr, --net <host>         Address to listen on (default: 0.0.0.0)
    -p, --port <port>                Port for clients (default: 4222, -1 picks a free one)
    -n, --name
        --server_name <name>         Name of the server (default: its id)
        --cluster_name <name>        Name of the server's cluster
    -P, --pid <file>                 Write the process id to a file
        --max_payload <size>         Largest message, headers included: 65536, 64KB (default: 1MB)
    -m, --http_port <port>           Monitoring port over HTTP (-1 picks a free one)
    -ms, --https_port <port>         Monitoring port over HTTPS, with the certificate for clients
    -c, --config <file>              Configuration file: docs/configuration.md
    -t                               Check the configuration file and exit
    -sl,--signal <signal>[=<pid>]    Signal a running server: ldm, stop, quit, term, reopen, reload
                                     <pid> is a process id, a prefix with *, or a pid file
        --client_advertise <string>  Address in INFO instead of the listening one
        --ports_file_dir <dir>       Write the ports in use to <program>_<pid>.ports there

Logging options:
    -l, --log <file>                 Log to a file
    -T, --logtime                    Log lines with a time (default: true)
        --logtime_utc                Time in UTC (default: false)
    -D, --debug                      Debug lines
    -V, --trace                      Trace the protocol
    -VV                              Same as -V
    -DV, -DVV                        Debug and trace
        --log_size_limit <bytes>     Rotate the log file at this size
        --max_traced_msg_len <bytes> Bytes of a message in traces; 0 is all
        --log_format <format>        text (default) or json
    -s, --syslog                     Log to syslog
    -r, --remote_syslog <url>        Log to a remote syslog: udp://host:514

Cluster options:
        --cluster,
        --cluster_listen <url>       Address to listen on for routes: nats://user:password@host:6222
        --routes <url>,<url>         Other servers of the cluster
        --cluster_advertise <string> Address that other servers dial, as host:port
        --no_advertise               Do not advertise the addresses for clients
        --connect_retries <number>   Further attempts to reach servers that others advertise

JetStream options:
    -js, --jetstream                 Enable JetStream
    -sd, --store_dir <dir>           Folder of streams

Authorization options:
        --user <user>                User name for clients
        --pass <password>            Password for clients
        --auth <token>               Token for clients

TLS options:
        --tls                        Require TLS (with --tlscert and --tlskey)
        --tlscert <file>             The server's certificate chain (PEM)
        --tlskey <file>              Key of the certificate (PEM)
        --tlsverify                  Require client certificates
        --tlscacert <file>           Authorities of client certificates (PEM)

Signals:
    INT, TERM: stop   USR1: open the log file again   USR2: lame duck   HUP: reload
    QUIT: print the threads' states, and exit with code 2

Common options:
    -h, --help                       Show this message
        --help_tls                   Show help on TLS
    -v, --version                    Show the version

Flags of nats-server that are not supported yet:
    --profile                                        is ignored with a warning
";
