"""The models, properties and configurations of the paper."""
