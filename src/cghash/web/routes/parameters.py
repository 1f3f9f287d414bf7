"""Parameters of an address, read into a schema in one step.

FastAPI reads each parameter by itself, which takes longer than the search that it asks for.
"""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

__all__ = ["described", "parameters_of"]

Schema = TypeVar("Schema", bound=BaseModel)

_MANY = {"filter": "filters"}  # parameters that may be given several times, and the field that holds them


def parameters_of(request: Request, schema: type[Schema]) -> Schema:
    """What stands behind the `?`; an empty value is as none."""
    given: dict[str, Any] = {}
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name in _MANY:
            given.setdefault(_MANY[name], []).append(value)
        elif value:  # the field's own name is no parameter's: it must not take the place of the list
            given[f"?{name}" if name in _MANY.values() else name] = value
    try:
        return schema.model_validate(given, strict=False)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_context=False)) from error


def described(schema: type[BaseModel]) -> dict[str, Any]:
    """The same parameters for OpenAPI."""
    names = {field: name for name, field in _MANY.items()}
    whole = schema.model_json_schema()
    required = whole.get("required", ())
    return {
        "parameters": [
            {
                "name": names.get(field, field),
                "in": "query",
                "required": field in required,
                "schema": about if field in required or field in names else {"anyOf": [about, {"const": ""}]},
            }
            for field, about in whole["properties"].items()
        ]
    }
