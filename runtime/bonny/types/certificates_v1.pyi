"""Types of certificates/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class CertificateSigningRequest(TypedDict, total=False):
    "CertificateSigningRequest objects provide a mechanism to obtain x509 certificates by submitting a certificate signing request, and having it asynchronously approved and issued."
    apiVersion: Required[Literal["certificates.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["CertificateSigningRequest"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    spec: CertificateSigningRequestSpec
    "spec contains the certificate request, and is immutable after creation."
    status: CertificateSigningRequestStatus
    "status contains information about whether the request is approved or denied, and the certificate issued by the signer, or the failure condition indicating signer failure."


class CertificateSigningRequestCondition(TypedDict, total=False):
    "CertificateSigningRequestCondition describes a condition of a CertificateSigningRequest object"
    lastTransitionTime: str
    "lastTransitionTime is the time the condition last transitioned from one status to another."
    lastUpdateTime: str
    "lastUpdateTime is the time of the last update to this condition"
    message: str
    "message contains a human readable message with details about the request state"
    reason: str
    "reason indicates a brief reason for the request state"
    status: str
    "status of the condition, one of True, False, Unknown."
    type: str
    "type of the condition."


class CertificateSigningRequestSpec(TypedDict, total=False):
    "CertificateSigningRequestSpec contains the certificate request."
    expirationSeconds: int
    "expirationSeconds is the requested duration of validity of the issued certificate."
    extra: dict[str, list[str]]
    "extra contains extra attributes of the user that created the CertificateSigningRequest."
    groups: list[str]
    "groups contains group membership of the user that created the CertificateSigningRequest."
    request: str
    "request contains an x509 certificate signing request encoded in a \"CERTIFICATE REQUEST\" PEM block."
    signerName: str
    "signerName indicates the requested signer, and is a qualified name."
    uid: str
    "uid contains the uid of the user that created the CertificateSigningRequest."
    usages: list[str]
    "usages specifies a set of key usages requested in the issued certificate."
    username: str
    "username contains the name of the user that created the CertificateSigningRequest."


class CertificateSigningRequestStatus(TypedDict, total=False):
    "CertificateSigningRequestStatus contains conditions used to indicate approved/denied/failed status of the request, and the issued certificate."
    certificate: str
    "certificate is populated with an issued certificate by the signer after an Approved condition is present."
    conditions: list[CertificateSigningRequestCondition]
    "conditions applied to the request."
