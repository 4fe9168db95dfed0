"""Processes: ranks of torch.distributed, workers, interrupts."""
