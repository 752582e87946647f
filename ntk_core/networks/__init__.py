"""Networks: layers, what is composed of them, graphs of neurons, and what can be said before weights are drawn."""
