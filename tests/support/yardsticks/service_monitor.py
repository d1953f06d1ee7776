"""ServiceMonitor, as a version class: parts of Kubernetes by reference, patterns, int-or-string, quantities, sets."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from bonny.api import (
    BuiltIn,
    Field,
    Int64,
    IntOrString,
    ListMap,
    ListSet,
    MapAtomic,
    Model,
    Quantity,
    Spec,
    Status,
    Version,
)

SecretKey: TypeAlias = Annotated[dict[str, Any], BuiltIn("v1", "SecretKeySelector")]
ConfigMapKey: TypeAlias = Annotated[dict[str, Any], BuiltIn("v1", "ConfigMapKeySelector")]
Headers: TypeAlias = Annotated[dict[str, list[SecretKey]], MapAtomic()]
ProxyUrl: TypeAlias = Annotated[str, Field(pattern="^(http|https|socks5)://.+$")]
PrometheusDuration: TypeAlias = Annotated[
    str,
    Field(
        pattern=r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
    ),
]
TlsVersion: TypeAlias = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
Protocol: TypeAlias = Literal[
    "PrometheusProto", "OpenMetricsText0.0.1", "OpenMetricsText1.0.0", "PrometheusText0.0.4", "PrometheusText1.0.0"
]
Named: TypeAlias = Annotated[str, Field(min_length=1)]


class SecretOrConfigMap(Model):
    config_map: ConfigMapKey | None = None
    secret: SecretKey | None = None


class Authorization(Model):
    credentials: SecretKey | None = None
    type: str | None = None


class BasicAuth(Model):
    password: SecretKey | None = None
    username: SecretKey | None = None


class SafeTls(Model):
    ca: SecretOrConfigMap | None = None
    cert: SecretOrConfigMap | None = None
    insecure_skip_verify: bool | None = None
    key_secret: SecretKey | None = None
    max_version: TlsVersion | None = None
    min_version: TlsVersion | None = None
    server_name: str | None = None


class Tls(SafeTls):
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class OAuth2(Model):
    client_id: SecretOrConfigMap
    client_secret: SecretKey
    endpoint_params: dict[str, str] | None = None
    no_proxy: str | None = None
    proxy_connect_header: Headers | None = None
    proxy_from_environment: bool | None = None
    proxy_url: ProxyUrl | None = None
    scopes: list[str] | None = None
    tls_config: SafeTls | None = None
    token_url: Named


class Relabeling(Model):
    action: Literal[
        *("replace", "Replace", "keep", "Keep", "drop", "Drop", "hashmod", "HashMod", "labelmap", "LabelMap"),
        *("labeldrop", "LabelDrop", "labelkeep", "LabelKeep", "lowercase", "Lowercase", "uppercase", "Uppercase"),
        *("keepequal", "KeepEqual", "dropequal", "DropEqual"),
    ] = "replace"
    modulus: Int64 | None = None
    regex: str | None = None
    replacement: str | None = None
    separator: str | None = None
    source_labels: list[str] | None = None
    target_label: str | None = None


class Endpoint(Model):
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    bearer_token_file: str | None = None
    bearer_token_secret: SecretKey | None = None
    enable_http2: bool | None = None
    filter_running: bool | None = None
    follow_redirects: bool | None = None
    honor_labels: bool | None = None
    honor_timestamps: bool | None = None
    interval: PrometheusDuration | None = None
    metric_relabelings: list[Relabeling] | None = None
    no_proxy: str | None = None
    oauth2: OAuth2 | None = None
    params: dict[str, list[str]] | None = None
    path: str | None = None
    port: str | None = None
    proxy_connect_header: Headers | None = None
    proxy_from_environment: bool | None = None
    proxy_url: ProxyUrl | None = None
    relabelings: list[Relabeling] | None = None
    scheme: Literal["http", "https", "HTTP", "HTTPS"] | None = None
    scrape_timeout: PrometheusDuration | None = None
    target_port: IntOrString | None = None
    tls_config: Tls | None = None
    track_timestamps_staleness: bool | None = None


class AttachMetadata(Model):
    node: bool | None = None


class NamespaceSelector(Model):
    any: bool | None = None
    match_names: list[str] | None = None


class ServiceMonitorSpec(Spec):
    attach_metadata: AttachMetadata | None = None
    body_size_limit: Annotated[str, Field(pattern="(^0|([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B)$")] | None = None
    convert_classic_histograms: Annotated[bool | None, Field(alias="convertClassicHistogramsToNHCB")] = None
    endpoints: list[Endpoint]
    fallback_scrape_protocol: Protocol | None = None
    job_label: str | None = None
    keep_dropped_targets: Int64 | None = None
    label_limit: Int64 | None = None
    label_name_length_limit: Int64 | None = None
    label_value_length_limit: Int64 | None = None
    namespace_selector: NamespaceSelector | None = None
    native_histogram_bucket_limit: Int64 | None = None
    native_histogram_min_bucket_factor: Quantity | None = None
    pod_target_labels: list[str] | None = None
    sample_limit: Int64 | None = None
    scrape_class: Named | None = None
    scrape_classic_histograms: bool | None = None
    scrape_protocols: Annotated[list[Protocol], ListSet()] | None = None
    selector: Annotated[dict[str, Any], BuiltIn("meta/v1", "LabelSelector")]
    selector_mechanism: Literal["RelabelConfig", "RoleSelector"] | None = None
    service_discovery_role: Literal["Endpoints", "EndpointSlice"] | None = None
    target_labels: list[str] | None = None
    target_limit: Int64 | None = None


class BindingCondition(Model):
    last_transition_time: datetime
    message: str | None = None
    observed_generation: Int64 | None = None
    reason: str | None = None
    status: Named
    type: Literal["Accepted"]


class Binding(Model):
    conditions: Annotated[list[BindingCondition], ListMap("type")] | None = None
    group: Literal["monitoring.coreos.com"]
    name: Named
    namespace: Named
    resource: Literal["prometheuses", "prometheusagents", "thanosrulers", "alertmanagers"]


class ServiceMonitorStatus(Status):
    bindings: Annotated[list[Binding], ListMap("group", "resource", "name", "namespace")] | None = None


class ServiceMonitor(Version):
    kind = "ServiceMonitor"
    version = "v1"
    storage = True
    hub = True
    short_names = ("smon",)
    categories = ("prometheus-operator",)
    spec: ServiceMonitorSpec
    status: ServiceMonitorStatus
