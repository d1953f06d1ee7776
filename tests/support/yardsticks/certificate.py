"""Certificate, as a version class: many optional parts, enumerations, references, a status with conditions."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from bonny.api import AGE, Column, Field, Int32, Int64, ListAtomic, ListMap, Model, Spec, Status, Version

Strings: TypeAlias = Annotated[list[str], ListAtomic()]


class OutputFormat(Model):
    type: Literal["DER", "CombinedPEM"]


class IssuerReference(Model):
    group: str | None = None
    kind: str | None = None
    name: str


class SecretKeyReference(Model):
    key: str | None = None
    name: str


class JksKeystore(Model):
    alias: str | None = None
    create: bool
    password: str | None = None
    password_secret_ref: SecretKeyReference | None = None


class Pkcs12Keystore(Model):
    create: bool
    password: str | None = None
    password_secret_ref: SecretKeyReference | None = None
    profile: Literal["LegacyRC2", "LegacyDES", "Modern2023"] | None = None


class Keystores(Model):
    jks: JksKeystore | None = None
    pkcs12: Pkcs12Keystore | None = None


class Names(Model):
    dns_domains: Strings | None = None
    email_addresses: Strings | None = None
    ip_ranges: Strings | None = None
    uri_domains: Strings | None = None


class NameConstraints(Model):
    critical: bool | None = None
    excluded: Names | None = None
    permitted: Names | None = None


class OtherName(Model):
    oid: str | None = None
    utf8_value: str | None = None


class PrivateKey(Model):
    algorithm: Literal["RSA", "ECDSA", "Ed25519"] | None = None
    encoding: Literal["PKCS1", "PKCS8"] | None = None
    rotation_policy: Literal["Never", "Always"] | None = None
    size: int | None = None


class SecretTemplate(Model):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class Subject(Model):
    countries: Strings | None = None
    localities: Strings | None = None
    organizational_units: Strings | None = None
    organizations: Strings | None = None
    postal_codes: Strings | None = None
    provinces: Strings | None = None
    serial_number: str | None = None
    street_addresses: Strings | None = None


SIGNATURES: TypeAlias = Literal[
    "SHA256WithRSA",
    "SHA384WithRSA",
    "SHA512WithRSA",
    "ECDSAWithSHA256",
    "ECDSAWithSHA384",
    "ECDSAWithSHA512",
    "PureEd25519",
]
USAGES: TypeAlias = Literal[
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
]


class CertificateSpec(Spec):
    additional_output_formats: Annotated[list[OutputFormat], ListAtomic()] | None = None
    common_name: str | None = None
    dns_names: Strings | None = None
    duration: str | None = None
    email_addresses: Strings | None = None
    encode_usages_in_request: bool | None = None
    ip_addresses: Strings | None = None
    is_ca: Annotated[bool | None, Field(alias="isCA")] = None
    issuer_ref: IssuerReference
    keystores: Keystores | None = None
    literal_subject: str | None = None
    name_constraints: NameConstraints | None = None
    other_names: Annotated[list[OtherName], ListAtomic()] | None = None
    private_key: PrivateKey | None = None
    renew_before: str | None = None
    renew_before_percentage: Int32 | None = None
    revision_history_limit: Int32 | None = None
    secret_name: str
    secret_template: SecretTemplate | None = None
    signature_algorithm: SIGNATURES | None = None
    subject: Subject | None = None
    uris: Strings | None = None
    usages: Annotated[list[USAGES], ListAtomic()] | None = None


class CertificateCondition(Model):
    last_transition_time: datetime | None = None
    message: str | None = None
    observed_generation: Int64 | None = None
    reason: str | None = None
    status: Literal["True", "False", "Unknown"]
    type: str


class CertificateStatus(Status):
    conditions: Annotated[list[CertificateCondition], ListMap("type")] | None = None
    failed_issuance_attempts: int | None = None
    last_failure_time: datetime | None = None
    next_private_key_secret_name: str | None = None
    not_after: datetime | None = None
    not_before: datetime | None = None
    renewal_time: datetime | None = None
    revision: int | None = None


class Certificate(Version):
    kind = "Certificate"
    version = "v1"
    storage = True
    hub = True
    short_names = ("cert", "certs")
    categories = ("cert-manager",)
    spec: CertificateSpec
    status: CertificateStatus
    columns = (
        Column("Ready", "string", '.status.conditions[?(@.type == "Ready")].status'),
        Column("Secret", "string", ".spec.secretName"),
        Column("Issuer", "string", ".spec.issuerRef.name", priority=1),
        Column("Status", "string", '.status.conditions[?(@.type == "Ready")].message', priority=1),
        AGE,
    )
