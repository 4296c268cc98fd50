"""Imports every module of presign-client, evaluates each type that it declares, and runs its doctests."""

import doctest
import importlib
import pkgutil
import typing

import presign_client

names = [each.name for each in pkgutil.iter_modules(presign_client.__path__, "presign_client.")]
modules = [importlib.import_module(name) for name in names]
types = [
    value
    for module in modules
    for value in vars(module).values()
    if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "__total__")
]
for each in types:
    typing.get_type_hints(each)
tests = [doctest.testmod(module, raise_on_error=True) for module in modules]
print(len(types) > 100, sum(test.attempted for test in tests) >= 6)
