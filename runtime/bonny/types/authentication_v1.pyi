"""Types of authentication/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class BoundObjectReference(TypedDict, total=False):
    "BoundObjectReference is a reference to an object that a token is bound to."
    apiVersion: str
    "apiVersion is API version of the referent."
    kind: str
    "kind of the referent."
    name: str
    "name of the referent."
    uid: str
    "uid of the referent."


class SelfSubjectReview(TypedDict, total=False):
    "SelfSubjectReview contains the user information that the kube-apiserver has about the user making this request."
    apiVersion: Required[Literal["authentication.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["SelfSubjectReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is standard object's metadata."
    status: SelfSubjectReviewStatus
    "status is filled in by the server with the user attributes."


class SelfSubjectReviewStatus(TypedDict, total=False):
    "SelfSubjectReviewStatus is filled by the kube-apiserver and sent back to a user."
    userInfo: UserInfo
    "userInfo is a set of attributes belonging to the user making this request."


class TokenRequest(TypedDict, total=False):
    "TokenRequest requests a token for a given service account."
    apiVersion: Required[Literal["authentication.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["TokenRequest"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object's metadata."
    spec: TokenRequestSpec
    "spec holds information about the request being evaluated"
    status: TokenRequestStatus
    "status is filled in by the server and indicates whether the token can be authenticated."


class TokenRequestSpec(TypedDict, total=False):
    "TokenRequestSpec contains client provided parameters of a token request."
    audiences: list[str]
    "audiences are the intendend audiences of the token."
    boundObjectRef: BoundObjectReference
    "boundObjectRef is a reference to an object that the token will be bound to."
    expirationSeconds: int
    "expirationSeconds is the requested duration of validity of the request."


class TokenRequestStatus(TypedDict, total=False):
    "TokenRequestStatus is the result of a token request."
    expirationTimestamp: str
    "expirationTimestamp is the time of expiration of the returned token."
    token: str
    "token is the opaque bearer token."


class TokenReview(TypedDict, total=False):
    "TokenReview attempts to authenticate a token to a known user."
    apiVersion: Required[Literal["authentication.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["TokenReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object's metadata."
    spec: TokenReviewSpec
    "spec holds information about the request being evaluated"
    status: TokenReviewStatus
    "status is filled in by the server and indicates whether the request can be authenticated."


class TokenReviewSpec(TypedDict, total=False):
    "TokenReviewSpec is a description of the token authentication request."
    audiences: list[str]
    "audiences is a list of the identifiers that the resource server presented with the token identifies as."
    token: str
    "token is the opaque bearer token."


class TokenReviewStatus(TypedDict, total=False):
    "TokenReviewStatus is the result of the token authentication request."
    audiences: list[str]
    "audiences are audience identifiers chosen by the authenticator that are compatible with both the TokenReview and token."
    authenticated: bool
    "authenticated indicates that the token was associated with a known user."
    error: str
    "error indicates that the token couldn't be checked"
    user: UserInfo
    "user is the UserInfo associated with the provided token."


class UserInfo(TypedDict, total=False):
    "UserInfo holds the information about the user needed to implement the user.Info interface."
    extra: dict[str, list[str]]
    "extra is any additional information provided by the authenticator."
    groups: list[str]
    "groups is the names of groups this user is a part of."
    uid: str
    "uid is a unique value that identifies this user across time."
    username: str
    "username is the name that uniquely identifies this user among all active users."
