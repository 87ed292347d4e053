"""access: who may call a pserver, and what.

tokens     names, keys and scopes of those who may, as a file lists them
gate       the pserver's side: challenges, proofs, and the scope of each call
identity   the caller's side: the token and certificates of this process

A key never travels. A pserver answers the first call of a caller with a number that nobody has used
before, and the caller proves its token by the HMAC of that number, which is good for one use.
"""

from psrt.rpc.access.gate import EVERYBODY, Gate, Grant, gate_of
from psrt.rpc.access.identity import (
    Identity,
    assume,
    assume_certificates,
    assume_insecure,
    assume_token_of,
    identity,
    prove,
)
from psrt.rpc.access.tokens import SCOPES, Token, TokenFile, new_key, read_tokens, text_of

__all__ = ["EVERYBODY", "SCOPES", "Gate", "Grant", "Identity", "Token", "TokenFile", "assume"]
__all__ += ["assume_certificates", "assume_insecure", "assume_token_of", "gate_of", "identity"]
__all__ += ["new_key", "prove", "read_tokens", "text_of"]
