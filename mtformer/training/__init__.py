"""From a config to a trained model: loss, optimizer, schedule, checkpoints, and the training loop."""
