"""Names of environment variables and their limits that are needed before pydantic is loaded."""

PREFIX = "LINEARITY_LAB_"
# Variables that compose.yaml reads.
OF_COMPOSE = frozenset(
    {"BIND", "CONTAINER_MEMORY", "NGINX_MEMORY", "SESSIONS_PER_CLIENT", "TLS_PROXY"}
)
MIN_KEY = 32  # letters of COOKIE_KEY
