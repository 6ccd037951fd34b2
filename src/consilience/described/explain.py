"""What is wrong with a description, in one plain line: the field, the rule and the value."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from consilience.errors import brief, printable, suggestion

NO_TABLE = "should be a table of fields"
RULES = {  # by pydantic's name of the error; what it has in its context may be named in braces
    "missing": "is required",
    "greater_than": "should be greater than {gt}",
    "greater_than_equal": "should be greater than or equal to {ge}",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be less than or equal to {le}",
    "finite_number": "should be a finite number",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_parsing_size": "should be a whole number of fewer digits",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "float_parsing": "should be a number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "string_type": "should be text",
    "string_unicode": "should be text",
    "path_type": "should be a path",
    "literal_error": "should be {expected}",
    "list_type": "should be a list",
    "dict_type": NO_TABLE,
    "model_type": NO_TABLE,
    "model_attributes_type": NO_TABLE,
    "too_short": "should have at least {min_length} entries",
    "too_long": "should have at most {max_length} entries",
    "value_error": "{error}",
    "whole": "{error}",
}
WITHOUT_VALUE = ("missing", "whole")  # nothing to show, or a whole table


def explained(invalid: ValidationError, model: type[BaseModel]) -> str:
    """The first thing that is wrong with values for a model."""
    error = invalid.errors(include_url=False)[0]
    names, place = _followed(model, error["loc"])
    field = printable(".".join(names)) or model.__name__.lower()
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        known = {name for inside in _models(place) for name in inside.model_fields}
        return f"{field}: no such field; {suggestion(names[-1], known)}"
    if kind == "union_tag_invalid":
        tag = str(context["tag"])
        return f"{field}: unknown kind {brief(tag)}; {suggestion(tag, _tags(place))}"
    if kind == "union_tag_not_found":
        return f"{field}.kind: is required; known: {', '.join(sorted(_tags(place)))}"
    rule = RULES.get(kind, "cannot be used").format(**{name: _bound(value) for name, value in context.items()})
    return f"{field}: {rule}" if kind in WITHOUT_VALUE else f"{field}: {rule}, got {brief(error['input'])}"


def _bound(value: Any) -> Any:
    """A limit as it was written: 1, not 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _followed(place: Any, location: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """Where an error is, as a person would write it, and the type there (for an unknown field, of its table).

    Between a table and its field pydantic names the table's kind, and below a field the type it tried; these are no
    part of the description.
    """
    names: list[str] = []
    for part in location:
        models = _models(place)
        if len(models) > 1:
            place = next((model for model in models if part in _kinds_of(model)), place)
        elif models:
            names.append(str(part))
            if part in models[0].model_fields:
                place = models[0].model_fields[str(part)].annotation
        elif (inside := _inside(place)) is not None and part != "[key]":
            names.append(str(part))
            place = inside
    return names, place


def _alternatives(place: Any) -> list[Any]:
    """The types that an annotation allows."""
    if get_origin(place) is Annotated:
        return _alternatives(get_args(place)[0])
    if get_origin(place) in (Union, types.UnionType):
        return [each for inner in get_args(place) for each in _alternatives(inner)]
    return [place]


def _models(place: Any) -> list[type[BaseModel]]:
    return [each for each in _alternatives(place) if isinstance(each, type) and issubclass(each, BaseModel)]


def _inside(place: Any) -> Any:
    """The type of the entries of a list or table."""
    return next((get_args(each)[-1] for each in _alternatives(place) if get_origin(each) in (list, dict)), None)


def _tags(place: Any) -> set[str]:
    return {kind for model in _models(place) for kind in _kinds_of(model)}


def _kinds_of(model: type[BaseModel]) -> tuple[str, ...]:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind and get_origin(kind.annotation) is Literal else ()
