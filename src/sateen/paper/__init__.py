"""The paper that this work begins with: its cases, its experiments, its tables and figures."""
