"""The engine: balls of a norm on what is known about the data, each point with its certificate."""
