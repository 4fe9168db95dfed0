"""Limit the instructions that this program and all that it starts may use, to measure older processors on a new one."""

import argparse
import os
import sys

import torch

# What torch calls the instructions, and the limits of oneDNN, ATen, MKL and CTranslate2.
LIMITS = {
    "avx2": ("avx2", "AVX2", "avx2", "AVX2", "AVX2"),
    "avx512": ("avx512_f", "AVX512_CORE", "avx512", "AVX512", "AVX512"),
    "avx512_bf16": ("avx512_bf16", "AVX512_CORE_BF16", "avx512", "AVX512", "AVX512"),
    "amx": ("amx_bf16", "AVX512_CORE_AMX", "avx512", "AVX512", "AVX512"),
}
VARIABLES = ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "CT2_FORCE_CPU_ISA")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--isa``."""
    parser.add_argument("--isa", choices=(*LIMITS, "native"), default="native", help="the newest instructions to use")


def limit(isa: str) -> None:
    """Start this program again under the limit, which libraries read when they are loaded; ``native`` is none."""
    if isa == "native":
        return
    name, *values = LIMITS[isa]
    if not torch.cpu.get_capabilities().get(name):
        sys.exit(f"--isa {isa}: this processor lacks it")
    limits = dict(zip(VARIABLES, values, strict=True))
    if any(os.environ.get(variable) != value for variable, value in limits.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | limits)
