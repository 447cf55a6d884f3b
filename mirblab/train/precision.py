"""precision: in which numbers a step is computed: bfloat16 where the machine has it, with float32 weights behind."""

from __future__ import annotations

import contextlib
from typing import Any


def chosen(precision: str, device: str) -> str:
    """Return "float32" or "bfloat16" for a recipe's *precision*; "auto" takes bfloat16 where it is faster.

    That is a GPU with bfloat16, or a CPU with AVX512-BF16 or AMX; without them bfloat16 is emulated and slow.

    >>> chosen("float32", "cpu")
    'float32'
    """
    if precision != "auto":
        return precision
    import torch

    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    able = torch.cpu.get_capabilities()
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") else "float32"


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which products are computed in bfloat16, or one that changes nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    import torch

    return torch.autocast(device, dtype=torch.bfloat16)
