#!/usr/bin/python3
"""Verifies a provider token with Python's cryptography: verify_token.py PUBLIC_PEM < token

Prints {"header": {...}, "claims": {...}, "signature_bytes": 64}; ends with 1 when anything is wrong.
"""

import base64
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils


def decoded(part):
    if "=" in part or "+" in part or "/" in part:
        raise SystemExit("not unpadded base64url: " + part)
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


with open(sys.argv[1], "rb") as file:
    key = serialization.load_pem_public_key(file.read())
header, claims, signature = sys.stdin.read().strip().split(".")
raw = decoded(signature)
r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
key.verify(utils.encode_dss_signature(r, s), f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
print(
    json.dumps(
        {
            "header": json.loads(decoded(header)),
            "claims": json.loads(decoded(claims)),
            "signature_bytes": len(raw),
        }
    )
)
