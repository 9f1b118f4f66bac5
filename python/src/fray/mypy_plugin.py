"""A plugin of mypy: the methods of ActorHandle[T] and RpcClient[T] have the signatures of class T.

    [tool.mypy]
    plugins = ["fray.mypy_plugin"]

A method that the class lacks is an error then, and so are other arguments than it takes. Without the plugin,
and for other type checkers, `handle[Counter.increment]` is checked, and `handle.increment` is not.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_OPT, ARG_POS, Decorator, FuncDef, OverloadedFuncDef, SymbolNode, TypeInfo, Var
from mypy.plugin import AttributeContext, Plugin
from mypy.typeops import bind_self
from mypy.types import CallableType, Instance, Parameters, Type, get_proper_type

_HANDLE = "fray.rpc.handle.ActorHandle"
_CLIENT = "fray.rpc.client.RpcClient"
_METHOD = "fray.rpc.handle.ActorMethod"
_CONTEXT = "fray.rpc.context.ActorContext"


class ActorPlugin(Plugin):
    """Types attributes of handles."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return what types the attributes that handles and clients themselves lack."""
        owner, _, name = fullname.rpartition(".")
        if owner not in (_HANDLE, _CLIENT) or name.startswith("_"):
            return None
        return lambda context: _typed(name, context)


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin, for mypy."""
    return ActorPlugin


def _typed(name: str, context: AttributeContext) -> Type:
    handle = get_proper_type(context.type)
    if not isinstance(handle, Instance) or len(handle.args) != 1 or handle.type.get(name):
        return context.default_attr_type
    actor = get_proper_type(handle.args[0])
    if not isinstance(actor, Instance) or actor.type.fallback_to_any or actor.type.get("__getattr__"):
        return context.default_attr_type
    found = actor.type.get(name)
    if found is None or found.node is None:
        near = difflib.get_close_matches(name, _public(actor.type), 1)
        hint = f'; maybe "{near[0]}"?' if near else ""
        context.api.fail(f'Actor "{actor.type.name}" has no method "{name}"{hint}', context.context)
        return context.default_attr_type
    if _is_value(found.node):
        context.api.fail(f'"{actor.type.name}.{name}" is no method that can be called', context.context)
        return context.default_attr_type
    function = _function(found.node, actor)
    default = get_proper_type(context.default_attr_type)
    if function is None:
        return default
    if isinstance(default, Instance) and default.type.fullname == _METHOD:
        return default.copy_modified(args=[_parameters(function), _result(function)])
    future = get_proper_type(default.ret_type) if isinstance(default, CallableType) else None
    if not isinstance(future, Instance):
        return default
    parameters = _parameters(function)
    return function.copy_modified(
        arg_types=parameters.arg_types,
        arg_kinds=parameters.arg_kinds,
        arg_names=parameters.arg_names,
        ret_type=future.copy_modified(args=[_result(function)]),
    )


def _public(actor: TypeInfo) -> list[str]:
    return [name for base in actor.mro[:-1] for name in base.names if not name.startswith("_")]


def _is_value(node: SymbolNode) -> bool:
    """Return whether this is certainly no method: a class, a property or another attribute."""
    if isinstance(node, Decorator):
        return node.var.is_property
    if isinstance(node, OverloadedFuncDef):
        return node.is_property
    declared = get_proper_type(node.type) if isinstance(node, Var) else None
    return isinstance(node, TypeInfo) or (
        isinstance(declared, Instance) and declared.type.get("__call__") is None
    )


def _function(node: SymbolNode, actor: Instance) -> CallableType | None:
    """Return the type of a method as it is called; None: it has several, or is none."""
    if isinstance(node, Decorator):
        declared, function = get_proper_type(node.var.type), node.func
    elif isinstance(node, FuncDef):
        declared, function = get_proper_type(node.type), node
    else:
        return None
    if not isinstance(declared, CallableType):
        return None
    if not function.is_static:
        declared = bind_self(declared, actor, function.is_class)
    base = map_instance_to_supertype(actor, function.info)
    bound = get_proper_type(expand_type_by_instance(declared, base))
    return bound if isinstance(bound, CallableType) else None


def _parameters(function: CallableType) -> Parameters:
    """Return the parameters without the context, which the server passes."""
    first = int(
        bool(function.arg_types)
        and function.arg_kinds[0] in (ARG_POS, ARG_OPT)
        and (function.arg_names[0] == "ctx" or _is(function.arg_types[0], _CONTEXT))
    )
    return Parameters(
        function.arg_types[first:],
        function.arg_kinds[first:],
        function.arg_names[first:],
        variables=function.variables,
    )


def _result(function: CallableType) -> Type:
    """Return what a call gives: of a coroutine, what that gives."""
    result = get_proper_type(function.ret_type)
    if isinstance(result, Instance) and result.type.fullname in ("typing.Coroutine", "typing.Awaitable"):
        return result.args[-1]
    return result


def _is(type_: Type, fullname: str) -> bool:
    proper = get_proper_type(type_)
    return isinstance(proper, Instance) and proper.type.fullname == fullname
