"""HTTPRoute, as a version class: unions by discriminator, rules over lists, merged lists, defaults of whole objects."""

from typing import Annotated, Literal, TypeAlias

from bonny.api import AGE, Column, Condition, Field, Int32, ListMap, ListSet, Model, Rule, Spec, Status, Version, union

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"

Group: TypeAlias = Annotated[str, Field(max_length=253, pattern=f"^$|^{_SUBDOMAIN}$")]
KindName: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=63, pattern="^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$")
]
ObjectName: TypeAlias = Annotated[str, Field(min_length=1, max_length=253)]
Namespace: TypeAlias = Annotated[str, Field(min_length=1, max_length=63, pattern=f"^{_LABEL}$")]
Subdomain: TypeAlias = Annotated[str, Field(min_length=1, max_length=253, pattern=f"^{_SUBDOMAIN}$")]
Hostname: TypeAlias = Annotated[str, Field(min_length=1, max_length=253, pattern=rf"^(\*\.)?{_SUBDOMAIN}$")]
PortNumber: TypeAlias = Annotated[Int32, Field(ge=1, le=65535)]
Token: TypeAlias = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
HeaderValue: TypeAlias = Annotated[str, Field(min_length=1, max_length=4096)]
ControllerName: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=253, pattern=rf"^{_SUBDOMAIN}\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$")
]


def _both(field: str) -> str:
    """The field of two items is the same, or missing in both. `orValue` would hide its length from the estimate."""
    return f"has(one.{field}) == has(other.{field}) && (!has(one.{field}) || one.{field} == other.{field})"


DISTINCT_PARENTS = Rule(
    "self.all(one, self.exists_one(other, one.group == other.group && one.kind == other.kind "
    f"&& one.name == other.name && {_both('__namespace__')} && {_both('sectionName')}))",
    message="references to the same parent need different sections",
)
SERVICE_NEEDS_PORT = Rule(
    "self.group != '' || self.kind != 'Service' || has(self.port)", message="a Service is named with a port"
)


class ParentReference(Model):
    group: Group = "gateway.networking.k8s.io"
    kind: KindName = "Gateway"
    name: ObjectName
    namespace: Namespace | None = None
    section_name: Subdomain | None = None


class LocalReference(Model):
    group: Group
    kind: KindName
    name: ObjectName


class BackendObject(Model, rules=(SERVICE_NEEDS_PORT,)):
    group: Group = ""
    kind: KindName = "Service"
    name: ObjectName
    namespace: Namespace | None = None
    port: PortNumber | None = None


class Header(Model):
    name: Token
    value: HeaderValue


Headers: TypeAlias = Annotated[list[Header], ListMap("name"), Field(max_length=16)]


class HeaderModifier(Model):
    add: Headers | None = None
    remove: Annotated[list[str], ListSet(), Field(max_length=16)] | None = None
    set: Headers | None = None


class Mirror(Model):
    backend_ref: BackendObject


class PathModifier(
    Model, rules=union("type", ReplaceFullPath="replaceFullPath", ReplacePrefixMatch="replacePrefixMatch")
):
    replace_full_path: Annotated[str, Field(max_length=1024)] | None = None
    replace_prefix_match: Annotated[str, Field(max_length=1024)] | None = None
    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"]


class Redirect(Model):
    hostname: Subdomain | None = None
    path: PathModifier | None = None
    port: PortNumber | None = None
    scheme: Literal["http", "https"] | None = None
    status_code: Literal[301, 302] = 302


class Rewrite(Model):
    hostname: Subdomain | None = None
    path: PathModifier | None = None


class Filter(
    Model,
    rules=union(
        "type",
        RequestHeaderModifier="requestHeaderModifier",
        ResponseHeaderModifier="responseHeaderModifier",
        RequestMirror="requestMirror",
        RequestRedirect="requestRedirect",
        URLRewrite="urlRewrite",
        ExtensionRef="extensionRef",
    ),
):
    extension_ref: LocalReference | None = None
    request_header_modifier: HeaderModifier | None = None
    request_mirror: Mirror | None = None
    request_redirect: Redirect | None = None
    response_header_modifier: HeaderModifier | None = None
    type: Literal[
        *("RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror", "RequestRedirect", "URLRewrite"),
        "ExtensionRef",
    ]
    url_rewrite: Rewrite | None = None


def at_most_once(kind: str) -> Rule:
    return Rule(f"self.filter(each, each.type == '{kind}').size() <= 1", message=f"{kind} may be there once")


Filters: TypeAlias = Annotated[
    list[Filter],
    Field(max_length=16),
    at_most_once("RequestHeaderModifier"),
    at_most_once("ResponseHeaderModifier"),
    at_most_once("RequestRedirect"),
    at_most_once("URLRewrite"),
    Rule(
        "!self.exists(each, each.type == 'RequestRedirect') || !self.exists(each, each.type == 'URLRewrite')",
        message="a request is redirected or rewritten, not both",
    ),
]


class BackendReference(BackendObject):
    filters: Filters | None = None
    weight: Annotated[Int32, Field(ge=0, le=1_000_000)] = 1


class HeaderMatch(Model):
    name: Token
    type: Literal["Exact", "RegularExpression"] = "Exact"
    value: HeaderValue


class QueryParamMatch(Model):
    name: Token
    type: Literal["Exact", "RegularExpression"] = "Exact"
    value: Annotated[str, Field(min_length=1, max_length=1024)]


class PathMatch(
    Model,
    rules=(
        Rule(
            "self.type == 'RegularExpression' || self.value.startsWith('/')",
            message="a path begins with a slash",
            field_path=".value",
        ),
        Rule(
            "self.type == 'RegularExpression' || !['//', '/./', '/../', '%2f', '%2F', '#'].exists(part, "
            "self.value.contains(part))",
            message="a path is in its plain form",
            field_path=".value",
        ),
    ),
):
    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    value: Annotated[str, Field(max_length=1024)] = "/"


class Match(Model):
    headers: Annotated[list[HeaderMatch], ListMap("name"), Field(max_length=16)] | None = None
    method: Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"] | None = None
    path: PathMatch = PathMatch()
    query_params: Annotated[list[QueryParamMatch], ListMap("name"), Field(max_length=16)] | None = None


class RouteRule(
    Model,
    rules=(
        Rule(
            "!has(self.backendRefs) || self.backendRefs.size() == 0 || !has(self.filters) "
            "|| !self.filters.exists(each, has(each.requestRedirect))",
            message="what is redirected goes to no backend",
        ),
    ),
):
    backend_refs: Annotated[list[BackendReference], Field(max_length=16)] | None = None
    filters: Filters | None = None
    matches: Annotated[list[Match], Field(max_length=8)] = Field([Match(path=PathMatch())])


class HTTPRouteSpec(Spec):
    hostnames: Annotated[list[Hostname], Field(max_length=16)] | None = None
    parent_refs: Annotated[list[ParentReference], Field(max_length=32), DISTINCT_PARENTS] | None = None
    rules: Annotated[list[RouteRule], Field(max_length=16)] = Field([RouteRule()])


class ParentStatus(Model):
    conditions: Annotated[list[Condition], ListMap("type"), Field(min_length=1, max_length=8)] | None = None
    controller_name: ControllerName
    parent_ref: ParentReference


class HTTPRouteStatus(Status, required=("parents",)):
    parents: Annotated[list[ParentStatus], Field(max_length=32)] | None = None


class HTTPRoute(Version):
    kind = "HTTPRoute"
    version = "v1alpha2"
    storage = True
    hub = True
    deprecated = True
    deprecation_warning = "v1alpha2 of HTTPRoute will go: use v1"
    categories = ("gateway-api",)
    spec: HTTPRouteSpec
    status: HTTPRouteStatus
    columns = (Column("Hostnames", "string", ".spec.hostnames"), AGE)
