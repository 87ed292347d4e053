"""tls: encrypted connections of both carriers.

certificates      the certificate, key and authority of a process, read again when they change
refusals          errors of TLS as errors of psrt, and why a connection ended without one
encrypted_socket  the calls of a socket that the stream carrier makes, over TLS

Both ends prove their identity by certificates of one authority, in TLS 1.3 only.
"""

from psrt.rpc.tls.certificates import CIPHERS_VARIABLE, NO_OLDER_TLS, TlsFiles, TlsSettings
from psrt.rpc.tls.encrypted_socket import EncryptedSocket, accept_encrypted, connect_encrypted
from psrt.rpc.tls.refusals import why_refused

__all__ = ["CIPHERS_VARIABLE", "NO_OLDER_TLS", "EncryptedSocket", "TlsFiles", "TlsSettings"]
__all__ += ["accept_encrypted", "connect_encrypted", "why_refused"]
