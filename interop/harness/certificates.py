"""Certificates for servers and clients of one case."""

import os
import subprocess


def self_signed(folder: str, name: str, names: str = "DNS:localhost,IP:127.0.0.1") -> tuple[str, str]:
    """Creates `NAME.pem` and its key `NAME.key`. Returns both paths. `names` are the alternative names."""
    pem, key = os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "30", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"]
    # rustls does not accept the certificate of an authority as that of a client.
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", pem]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return pem, key
