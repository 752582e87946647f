# CPU:  docker build -t linearity-lab . && docker run --rm -p 8501:8501 -v linearity-lab:/data linearity-lab
# GPU:  docker build -t linearity-lab --build-arg ACCELERATOR=cuda13 . && docker run --rm --gpus all -p 8501:8501 linearity-lab
# A host:  docker compose up --build, which puts nginx in front  (docs/hosting.md)

# Any Debian image with Python 3.11 or later as "python"; docs/hosting.md describes how to renew its digest.
ARG BASE=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7

FROM ${BASE} AS build
# cpu; cuda12 or cuda13 for an NVIDIA GPU (the driver comes from the host).
ARG ACCELERATOR=cpu
WORKDIR /build
COPY locks/${ACCELERATOR}.txt requirements.txt
# Every package as it was locked: its version, and the hash of its file.
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r requirements.txt

FROM ${BASE} AS proxy
# Debian's nginx with its security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends nginx-light \
    && rm -rf /var/lib/apt/lists/*
COPY hosting /hosting
USER 65534
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/_stcore/health', timeout=4)"]
CMD ["python", "/hosting/start_nginx.py"]

FROM ${BASE}
RUN useradd --create-home --uid 1000 app && install -d -o app -g app -m 700 /data
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
# .dockerignore lets in only what the dashboard runs on.
COPY . .
RUN /opt/venv/bin/python -m compileall -q /app
# Results and compiled code go to /data, scratch files to /tmp; the rest can be read-only.
ENV PATH="/opt/venv/bin:$PATH" \
    HOME=/data \
    XDG_DATA_HOME=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE=true \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    XLA_PYTHON_CLIENT_PREALLOCATE=false
USER 1000
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]
