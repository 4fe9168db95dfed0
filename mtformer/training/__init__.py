"""From a config to a trained model: loss, schedule, checkpoints, the loop, and the run that holds it all."""
