"""Names of environment variables, without pydantic, which would delay the server's start."""

PREFIX = "LINEARITY_LAB_"
# Variables that compose.yaml reads, in addition to the settings below.
OF_COMPOSE = frozenset(
    {"BIND", "CONTAINER_MEMORY", "NGINX_MEMORY", "SESSIONS_PER_CLIENT", "TLS_PROXY"}
)
