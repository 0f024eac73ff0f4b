"""What the paper studied: three models from biology, random networks, its configurations and published figures."""
